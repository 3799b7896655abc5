// The time shown: it plays, stops, steps and jumps.

/** Simulated seconds per second. */
export const SPEEDS = [0.00001, 0.00003, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10];

const USUAL = 0.03;
/** Slower speeds are for runs of milliseconds. */
const SLOWEST_USUAL = 0.001;
/** Below this length of a run times are in milliseconds. */
export const SHORT_S = 0.1;
/** A short run gets a speed of its own if it would be over sooner than this; it then takes at least PLAY_S. */
const SHORTEST_PLAY_S = 1;
const PLAY_S = 5;

export class Player {
  time = 0;
  speed = USUAL;
  isPlaying = false;
  private last = 0;

  /** `limit` returns up to where there is something to show, `advance` makes more of it while it plays. */
  constructor(
    private readonly limit: () => number,
    private readonly changed: () => void,
    private readonly advance: (time: number) => void,
  ) {}

  toggle(): void {
    if (!this.isPlaying && this.time >= this.limit()) this.time = 0;
    this.isPlaying = !this.isPlaying;
    this.last = performance.now();
    if (this.isPlaying) requestAnimationFrame(this.frame);
    this.changed();
  }

  seek(time: number): void {
    this.time = Math.max(0, Math.min(time, this.limit()));
    this.changed();
  }

  /** Stops at a time. */
  halt(time = this.time): void {
    this.isPlaying = false;
    this.seek(time);
  }

  /** A speed at which a run of this length can be watched. */
  fit(duration: number): void {
    if (duration >= SHORT_S) {
      if (this.speed < SLOWEST_USUAL) this.speed = USUAL;
    } else if (duration < this.speed * SHORTEST_PLAY_S) {
      this.speed = SPEEDS.findLast((speed) => duration >= speed * PLAY_S) ?? SPEEDS[0];
    }
  }

  /** Plays at the next faster or slower speed. */
  changeSpeed(by: 1 | -1): void {
    const at = SPEEDS.indexOf(this.speed) + by;
    this.setSpeed(SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, at))]);
  }

  setSpeed(speed: number): void {
    this.speed = speed;
    this.changed();
  }

  private readonly frame = (now: number): void => {
    if (!this.isPlaying) return;
    // A page in the background gets no frames: it does not jump when it is seen again.
    const passed = Math.min(0.1, (now - this.last) / 1000);
    this.last = now;
    const next = this.time + Math.max(0, passed) * this.speed;
    this.advance(next);
    this.time = Math.min(next, this.limit());
    this.changed();
    requestAnimationFrame(this.frame);
  };
}
