// Draws each figure that is not over time when it comes into view.
{
  const options = {
    renderer: "svg",
    actions: { export: true, source: false, compiled: false, editor: false },
  };
  const dark = matchMedia("(prefers-color-scheme: dark)");
  // What plots/theme.py uses for text, lines and paper, and the same on a dark page.
  const DARK = {
    "#1f2328": "#e6edf3", "#59636e": "#9da7b3", "#d0d7de": "#3d444d", "#eaeef2": "#262c36",
    "#a40e26": "#ff7b72", "#6e4b2a": "#b98a63", "#ffffff": "#0d1117", white: "#0d1117",
    "#0072b2": "#3a9bd9", "#005280": "#3a9bd9", "#994300": "#f08a3e", "#00724f": "#2cc295", "#925673": "#dd93b8",
  };
  const coloured = (value) => {
    if (typeof value === "string") return DARK[value] ?? value;
    if (Array.isArray(value)) return value.map(coloured);
    if (value === null || typeof value !== "object") return value;
    // The numbers in a heat map have a colour for the light scale of its cells: that stays.
    const stays = (key, inner) => key === "data" || key === "datasets" || (key === "scale" && inner?.interpolate);
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, stays(key, inner) ? inner : coloured(inner)]));
  };
  const specs = new Map();
  // Unpacked at once, so that a page that is printed has it. It runs when the first figure needs it:
  // that takes longer than all else on the page.
  let library;
  const unpacked = (async () => {
    const bytes = Uint8Array.from(atob(document.getElementById("vega").textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    library = await new Response(stream).text();
  })();
  const load = () => {
    const script = document.createElement("script");
    script.textContent = library;
    document.head.append(script);
  };
  const draw = (plot) => {
    if (library === undefined) return void unpacked.then(() => draw(plot));
    if (!("vegaEmbed" in window)) load();
    if (!specs.has(plot)) specs.set(plot, JSON.parse(document.getElementById(plot.dataset.spec).textContent));
    const spec = specs.get(plot);
    const live = document.createElement("div");
    live.className = "live";
    const embed = (shown) => vegaEmbed(live, dark.matches ? coloured(shown) : shown, options);
    const isWide = () => widthOf(live) > plot.clientWidth;
    embed(spec)
      .then(() => (isWide() && spec.columns > 1 ? embed({ ...spec, columns: 1 }) : undefined))
      .then(
        () => {
          plot.replaceChildren(live);
          if (isWide()) shrink(plot, live);
        },
        (error) => console.error(plot.dataset.spec, error),
      );
  };
  const widthOf = (live) => live.querySelector("svg").width.baseVal.value;
  /** Makes a figure as wide as the page, or as narrow as can still be read: then it scrolls, and says so. */
  const shrink = (plot, live) => {
    const width = Math.max(plot.clientWidth, LEAST * widthOf(live));
    const svg = live.querySelector("svg");
    svg.style.width = `${width}px`;
    svg.style.height = "auto";
    if (width <= plot.clientWidth + 1) return;
    const hint = document.createElement("p");
    hint.className = "note";
    hint.textContent = "This figure is wider than the page: scroll it sideways.";
    live.prepend(hint);
  };
  const LEAST = 0.6;
  const plots = [...document.querySelectorAll("[data-spec]")];
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) {
        if (isIntersecting) {
          observer.unobserve(target);
          draw(target);
        }
      }
    },
    { rootMargin: "400px" },
  );
  plots.forEach((plot) => observer.observe(plot));
  addEventListener("beforeprint", () => plots.filter((plot) => !specs.has(plot)).forEach(draw));
  dark.addEventListener("change", () => [...specs.keys()].forEach(draw));
}
