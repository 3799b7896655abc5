declare module "virtual:core" {
  /** The compiled simulator, compressed by gzip, as base64. */
  const core: string;
  export default core;
}
