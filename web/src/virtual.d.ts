declare module "virtual:core" {
  /** The compiled simulator as base64. */
  const core: string;
  export default core;
}
