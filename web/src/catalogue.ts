// What a scenario may name. The compiled simulator has the list.

/** An entry of the catalogue. */
interface Entry {
  name: string;
  description: string;
  parameters: string | object[];
}

interface Catalogue {
  controllers: Entry[];
  recoveries: Entry[];
  queues: Entry[];
}

/** Everything that a scenario may name. */
export let catalogue: Catalogue = { controllers: [], recoveries: [], queues: [] };

/** Reads the simulator's list, which is JSON. */
export function setCatalogue(text: string): void {
  catalogue = JSON.parse(text) as Catalogue;
}
