// Replaces each static picture by its live chart when it comes into view.
{
  const options = {
    renderer: "svg",
    actions: { export: true, source: false, compiled: false, editor: false },
  };
  const enliven = (plot) => {
    const spec = JSON.parse(document.getElementById(plot.dataset.spec).textContent);
    const live = document.createElement("div");
    live.className = "live";
    vegaEmbed(live, spec, options).then(
      () => plot.replaceChildren(live),
      (error) => console.error(plot.dataset.spec, error),
    );
  };
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) {
        if (isIntersecting) {
          observer.unobserve(target);
          enliven(target);
        }
      }
    },
    { rootMargin: "400px" },
  );
  document.querySelectorAll("[data-spec]").forEach((plot) => observer.observe(plot));
}
