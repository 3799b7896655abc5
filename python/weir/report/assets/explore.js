// Time series: panels of lines over one axis of time, drawn by uPlot. All figures of a group show
// the same range of time and the same choices.
{
  const HEIGHT = 160;
  const LEFT = 66;
  const RIGHT = 24; // for half of the last label of time
  const MOST_NAMES = 12;
  const MEANS = 240; // slices of a line of means in sight
  const MISSING = 0xffff;
  const MOST_DIGITS = 12; // after the point, at an axis
  const DIGIT = 7; // pixels
  const INSTANT = 9; // digits after the point, at most
  const STEP = 1.25; // of the zoom, per notch of a wheel
  const CALM = 250; // ms after the page has scrolled, in which a wheel scrolls on
  const TYPICAL = "typical", ALL = "all";

  // ---- Colours: those of the page; a dark page has lighter lines.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const channels = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  const shade = (colour, alpha = 1) => {
    let rgb = channels(colour);
    const light = (0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2]) / 255;
    const lift = dark.matches ? Math.max(0, 0.6 - light) : 0;
    rgb = rgb.map((value) => Math.round(value + (255 - value) * lift));
    return `rgba(${rgb.join(",")},${alpha})`;
  };

  // ---- Data: see plots/explore.py.
  const unpacked = (text, kind) => new kind(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
  const instants = ({ first, step, n, unit, data }) =>
    data === undefined
      ? Float64Array.from({ length: n }, (_, at) => first + at * step)
      : Float64Array.from(unpacked(data, Uint32Array), (value) => first + value * unit);
  const values = ({ low, unit, data }) =>
    Float64Array.from(unpacked(data, Uint16Array), (value) => (value === MISSING ? NaN : low + value * unit));
  const lineOf = (raw) => ({ ...raw, t: instants(raw.t), v: values(raw.v), digits: Math.max(0, Math.ceil(-Math.log10(raw.v.unit))) });
  const bandOf = (raw) => ({ ...raw, t: instants(raw.t), low: values(raw.low), high: values(raw.high) });
  /** Index of the first of the sorted `t` that is not less than `at`. */
  const from = (t, at) => {
    let low = 0, high = t.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (t[middle] < at) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  /** The means of slices of equal numbers of points: of a rate, peaks mean little. */
  const means = (t, v, first, last) => {
    const per = Math.ceil((last - first) / MEANS);
    const xs = [], ys = [];
    // Slices begin at multiples of their size, so that a line keeps its shape while it is moved.
    for (let slice = Math.floor(first / per) * per; slice < last; slice += per) {
      let at = 0, sum = 0, count = 0;
      for (let n = slice; n < Math.min(slice + per, t.length); n++) if (v[n] === v[n]) (at += t[n], sum += v[n], count++);
      if (count) (xs.push(at / count), ys.push(sum / count));
    }
    return [xs, ys];
  };
  /** The part of a line that is in sight: a point more on each side, and no more than pixels show. */
  const visible = ({ t, v, shape }, [start, end], width) => {
    const first = Math.max(0, from(t, start) - 1), last = Math.min(t.length, from(t, end) + 1);
    const per = Math.floor((last - first) / width);
    const xs = [], ys = [];
    if (shape === "mean" && last - first > MEANS) return means(t, v, first, last);
    if (per < 4) {
      for (let at = first; at < last; at++) if (v[at] === v[at]) (xs.push(t[at]), ys.push(v[at]));
      return [xs, ys];
    }
    for (let slice = first; slice < last; slice += 2 * per) {
      const stop = Math.min(last, slice + 2 * per);
      let least = -1, most = -1;
      for (let at = slice; at < stop; at++) {
        if (v[at] !== v[at]) continue;
        if (least < 0 || v[at] < v[least]) least = at;
        if (most < 0 || v[at] > v[most]) most = at;
      }
      for (const at of least < most ? [least, most] : least > most ? [most, least] : [least])
        if (at >= 0) (xs.push(t[at]), ys.push(v[at]));
    }
    return [xs, ys];
  };
  const number = (value, digits) => {
    const exact = Math.min(digits, Math.max(0, 3 - Math.floor(Math.log10(Math.abs(value) || 1))));
    return value.toFixed(exact).replace("-", "−");
  };
  /** What an axis says at its ticks: with all digits that their distance needs, so that no two are alike. */
  const labels = (u, ticks, axis, space, distance) => {
    const isWhole = (value) => Math.abs(value - Math.round(value)) < 1e-6 * value;
    let digits = 0;
    while (digits < MOST_DIGITS && !isWhole(distance * 10 ** digits)) digits++;
    return ticks.map((tick) => (tick || 0).toLocaleString("en", { maximumFractionDigits: digits }).replace("-", "−"));
  };
  /** Pixels between two ticks of time: more where their labels have many digits. */
  const apart = (u, axis, start, end) => 50 + DIGIT * Math.max(0, -Math.floor(Math.log10(end - start)) - 1);
  /** The value of a line at an instant: that of the nearest point, or of the last one of steps. */
  const valueAt = (line, at) => {
    const { shape } = line;
    const [t, v] = shape === "mean" ? line.seen : [line.t, line.v];
    let index = Math.min(from(t, at), t.length - 1);
    if (index > 0 && (shape === "step" ? t[index] > at : at - t[index - 1] < t[index] - at)) index--;
    return index < 0 ? NaN : v[index];
  };

  // ---- Groups: what linked figures have in common.
  const groups = new Map();
  const groupOf = ({ group, end }) => {
    if (!groups.has(group)) groups.set(group, { full: [0, end], range: [0, end], at: null, choices: {}, members: [] });
    const found = groups.get(group);
    found.full[1] = Math.max(found.full[1], end);
    found.range = [...found.full];
    return found;
  };
  const setRange = (group, start, end) => {
    const [low, high] = group.full;
    const width = Math.min(Math.max(end - start, (high - low) * 1e-6), high - low);
    const first = Math.min(Math.max(start, low), high - width);
    group.range = [first, first + width];
    for (const member of group.members) member.stale();
  };
  const zoom = (group, factor, around) => {
    const [start, end] = group.range;
    const at = around ?? group.at ?? (start + end) / 2;
    setRange(group, at - (at - start) * factor, at + (end - at) * factor);
  };
  const pan = (group, share) => {
    const [start, end] = group.range;
    setRange(group, start + share * (end - start), end + share * (end - start));
  };
  const reset = (group) => setRange(group, ...group.full);
  const point = (group, at) => {
    group.at = at;
    for (const member of group.members) member.point();
  };
  const choose = (group, key, value) => {
    group.choices[key] = value;
    for (const member of group.members) member.rebuild();
  };

  // ---- Elements.
  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const button = (text, label, act) => {
    const made = element("button", { type: "button", title: label, "aria-label": label }, text);
    made.onclick = act;
    return made;
  };
  const select = (name, options, chosen, act) => {
    const made = element("select", { "data-choice": name });
    for (const [value, text] of options) made.add(new Option(text, value, false, value === chosen));
    made.onchange = () => act(made.value);
    return element("label", {}, `${name} `, made);
  };

  // ---- One panel.
  const clipped = (paint) => (u) => {
    u.ctx.save();
    u.ctx.beginPath();
    u.ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
    u.ctx.clip();
    paint(u, (t) => u.valToPos(t, "x", true), (v) => u.valToPos(v, "y", true));
    u.ctx.restore();
  };
  const paintBands = (panel) => (u, x, y) => {
    for (const { colour, t, low, high } of panel.seenBands) {
      u.ctx.fillStyle = shade(colour, 0.18);
      u.ctx.beginPath();
      t.forEach((at, n) => u.ctx.lineTo(x(at), y(high[n])));
      for (let n = t.length - 1; n >= 0; n--) u.ctx.lineTo(x(t[n]), y(low[n]));
      u.ctx.fill();
    }
  };
  const paintMarks = (panel, made) => (u, x, y) => {
    const scale = devicePixelRatio || 1;
    u.ctx.font = `${10 * scale}px system-ui, Arial, sans-serif`;
    u.ctx.fillStyle = css("--soft");
    u.ctx.lineWidth = scale;
    const rule = (x0, y0, x1, y1) => {
      u.ctx.setLineDash([4 * scale, 3 * scale]);
      u.ctx.strokeStyle = css("--soft");
      u.ctx.beginPath();
      u.ctx.moveTo(x0, y0);
      u.ctx.lineTo(x1, y1);
      u.ctx.stroke();
    };
    const { left, top, width, height } = u.bbox;
    for (const [level, name] of panel.levels) {
      rule(left, y(level), left + width, y(level));
      u.ctx.textAlign = "right";
      u.ctx.fillText(name, left + width - 2 * scale, y(level) - 3 * scale);
    }
    for (const line of made.lines.filter(({ shape }) => shape === "ticks")) {
      u.ctx.setLineDash([]);
      u.ctx.strokeStyle = shade(line.colour);
      u.ctx.lineWidth = 1.5 * scale;
      u.ctx.beginPath();
      const [start, end] = [from(line.t, u.scales.x.min), from(line.t, u.scales.x.max)];
      for (let n = start; n < end; n++) if (line.v[n] > 0) (u.ctx.moveTo(x(line.t[n]), top + height), u.ctx.lineTo(x(line.t[n]), top + height - 8 * scale));
      u.ctx.stroke();
      u.ctx.lineWidth = scale;
    }
    panel.moments.forEach(([at, name], n) => {
      rule(x(at), top, x(at), top + height);
      const isLate = x(at) > left + 0.75 * width;
      u.ctx.textAlign = isLate ? "right" : "left";
      u.ctx.fillText(name, x(at) + (isLate ? -3 : 3) * scale, top + (10 + 12 * (n % 2)) * scale);
    });
  };

  /** Smallest and largest value in sight. */
  const extent = (panel, lines) => {
    if (panel.range) return panel.range;
    let low = 0, high = -Infinity;
    // Bands do not count: the range of two or three repeats may be far wider than all lines.
    for (const v of [...lines.flatMap(({ seen }) => seen[1]), ...panel.levels.map(([level]) => level)])
      (low = Math.min(low, v), high = Math.max(high, v));
    return high > low ? [low, low + (high - low) * 1.08] : [low, low + 1];
  };
  const isDrawn = ({ shape }) => shape !== "ticks"; // by uPlot
  const joined = (parts) => (parts.length ? uPlot.join(parts) : [[]]);

  const makePanel = (figure, panel, title, isLast) => {
    const { group } = figure;
    const values = element("span", { class: "values" });
    const root = element("div", { class: "panel", tabindex: 0, role: "group", "aria-label": `${title}: ${panel.y} over time` });
    root.append(element("div", { class: "head" }, element("b", {}, title), values));
    const made = { root, values, lines: [], u: null, names: [] };

    const series = (line) => ({
      stroke: shade(line.colour, line.alpha * (made.isMany && line.repeat !== null ? 0.45 : 1)),
      width: line.shape === "area" ? 1 : line.width,
      dash: line.dash,
      fill: line.shape === "area" ? shade(line.colour, 0.3) : undefined,
      paths: line.shape === "step" ? uPlot.paths.stepped({ align: 1 }) : undefined,
      spanGaps: true,
      points: { show: false },
    });
    const options = (width) => ({
      width,
      height: HEIGHT + (isLast ? 16 : 0),
      legend: { show: false },
      padding: [6, RIGHT, 0, 0],
      scales: { x: { time: false, auto: false }, y: { auto: false } },
      series: [{}, ...made.lines.filter(isDrawn).map(series)],
      axes: [
        { stroke: css("--soft"), grid: { show: false }, ticks: { stroke: css("--line"), size: 4 }, size: 24, gap: 2, values: labels, space: apart, label: isLast ? "time, s" : undefined, labelSize: 16, labelGap: 0, font: "11px system-ui, Arial, sans-serif", labelFont: "12px system-ui, Arial, sans-serif" },
        { stroke: css("--soft"), grid: { stroke: css("--grid"), width: 1 }, ticks: { show: false }, values: labels, size: LEFT - 18, gap: 4, label: panel.y, labelSize: 18, labelGap: 0, space: 28, font: "11px system-ui, Arial, sans-serif", labelFont: "12px system-ui, Arial, sans-serif" },
      ],
      cursor: {
        y: false,
        points: { size: 6 },
        drag: { x: true, y: false, setScale: false },
        bind: {
          mousedown: (u, target, handler) => (event) => (event.shiftKey ? startPan(u, event) : handler(event)),
          dblclick: () => () => reset(group),
        },
      },
      hooks: {
        drawClear: [clipped(paintBands(panel))],
        draw: [clipped(paintMarks(panel, made))],
        setCursor: [(u) => u.over.matches(":hover") && u.cursor.left >= 0 && point(group, u.posToVal(u.cursor.left, "x"))],
        setSelect: [
          (u) => {
            const { left, width } = u.select;
            if (width > 3) setRange(group, u.posToVal(left, "x"), u.posToVal(left + width, "x"));
            u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          },
        ],
      },
    });
    const startPan = (u, event) => {
      const start = [...group.range], x = event.clientX;
      const move = (now) => {
        const shift = ((x - now.clientX) / u.over.clientWidth) * (start[1] - start[0]);
        setRange(group, start[0] + shift, start[1] + shift);
      };
      addEventListener("mousemove", move);
      addEventListener("mouseup", () => removeEventListener("mousemove", move), { once: true });
    };
    /** Takes the lines in sight; returns the range of their values. */
    made.look = () => {
      const width = Math.max(made.u.over.clientWidth, 100);
      for (const line of made.lines) line.seen = isDrawn(line) ? visible(line, group.range, width) : [[], []];
      return extent(panel, made.lines);
    };
    made.refresh = ([low, high]) => {
      made.u.batch(() => {
        made.u.setData(joined(made.lines.filter(isDrawn).map(({ seen }) => seen)), false);
        made.u.setScale("x", { min: group.range[0], max: group.range[1] });
        made.u.setScale("y", { min: low, max: high });
      });
    };
    /** Draws the lines that the choices leave, from nothing. */
    made.build = (width) => {
      made.u?.destroy();
      const repeat = group.choices.Repeat ?? TYPICAL;
      const shown = repeat === TYPICAL ? panel.typical : +repeat;
      made.isMany = repeat === ALL;
      made.lines = panel.lines
        .filter((line) => line.repeat === null || made.isMany || line.repeat === shown)
        .map((line) => (line.ready ??= lineOf(line)));
      panel.seenBands = made.isMany ? [] : panel.bands.map((band) => (band.ready ??= bandOf(band)));
      made.u = new uPlot(options(width), [[], ...made.lines.filter(isDrawn).map(() => [])], root);
      wheel(made.u);
      fingers(made.u);
      name();
    };
    const wheel = (u) => {
      u.over.addEventListener("mousemove", () => (armed = performance.now() - scrolled > CALM), { passive: true });
      u.over.addEventListener(
        "wheel",
        (event) => {
          const [start, end] = group.range, [low, high] = group.full;
          const isOut = event.deltaY > 0, isWhole = end - start >= (high - low) * 0.999999;
          const isSideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
          if (!armed || (!isSideways && isOut && isWhole)) return; // the page scrolls
          event.preventDefault();
          if (isSideways) pan(group, event.deltaX / u.over.clientWidth);
          else zoom(group, isOut ? STEP : 1 / STEP, u.posToVal(event.clientX - u.over.getBoundingClientRect().left, "x"));
        },
        { passive: false },
      );
    };
    /** Two fingers zoom, and the times below them stay there. One finger moves in time; up and down it scrolls the page. */
    const fingers = ({ over }) => {
      const places = new Map(); // as shares of the width
      let anchors = [], span = 0;
      const place = ({ pointerId, clientX }) => {
        const { left, width } = over.getBoundingClientRect();
        places.set(pointerId, (clientX - left) / width);
      };
      const anchor = () => {
        const [start, end] = group.range;
        span = end - start;
        anchors = [...places.values()].slice(0, 2).map((share) => start + share * span);
      };
      const follow = () => {
        const [first, second] = [...places.values()];
        const width = anchors.length > 1 ? (anchors[1] - anchors[0]) / (second - first) : span;
        // Fingers that meet or cross have no range.
        if (!Number.isFinite(width) || width <= 0) return;
        const start = anchors[0] - first * width;
        setRange(group, start, start + width);
      };
      const lift = ({ pointerId }) => places.delete(pointerId) && anchor();
      over.addEventListener("pointerdown", (event) => event.pointerType === "touch" && (place(event), anchor()));
      over.addEventListener("pointermove", (event) => places.has(event.pointerId) && (place(event), follow()));
      over.addEventListener("pointerup", lift);
      over.addEventListener("pointercancel", lift);
    };
    /** The names of the lines, each with space for its value. */
    const name = () => {
      made.names = [];
      values.replaceChildren();
      for (const line of made.isMany ? [] : made.lines.slice(0, MOST_NAMES)) {
        const value = element("output");
        const swatch = element("i", { class: line.shape });
        const colour = shade(line.colour, line.alpha);
        swatch.style.background = line.dash?.length ? `repeating-linear-gradient(90deg, ${colour} 0 4px, transparent 4px 7px)` : colour;
        made.names.push([line, value]);
        values.append(element("span", {}, swatch, `${line.name} `, value));
      }
    };
    made.point = () => {
      const { at } = group;
      for (const [line, value] of made.names) {
        const found = at === null || !line.t.length ? NaN : valueAt(line, at);
        value.textContent = found === found ? number(found, line.digits) : "";
      }
      if (made.u && at !== null && !made.u.over.matches(":hover"))
        made.u.setCursor({ left: made.u.valToPos(at, "x"), top: 10 }, false);
    };
    root.onkeydown = (event) => {
      const act = KEYS[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey || event.target !== root) return;
      event.preventDefault();
      act(group);
      figure.say(made);
    };
    return made;
  };
  const step = (group, share) => {
    const [start, end] = group.range;
    const at = (group.at ?? start) + share * (end - start);
    if (at < start || at > end) pan(group, share * 4);
    point(group, Math.min(Math.max(at, group.full[0]), group.full[1]));
  };
  const KEYS = {
    ArrowRight: (group) => step(group, 0.01),
    ArrowLeft: (group) => step(group, -0.01),
    "+": (group) => zoom(group, 1 / STEP),
    "-": (group) => zoom(group, STEP),
    "0": reset,
  };

  // ---- One figure: its choices and its panels.
  const makeFigure = (plot) => {
    const data = JSON.parse(document.getElementById(plot.dataset.series).textContent);
    const group = groupOf(data);
    const figure = { group };
    const keys = Object.keys(data.panels[0].point);
    const points = [...new Map(data.panels.map(({ point }) => [JSON.stringify(point), point])).values()];
    const repeats = [...new Set(data.panels.flatMap(({ lines }) => lines.map(({ repeat }) => repeat)))].filter((r) => r !== null).sort((a, b) => a - b);
    for (const key of keys) group.choices[key] ??= data.shown ? data.shown[key] : ALL;

    const instant = element("output", { class: "instant" });
    const spoken = element("p", { class: "spoken", "aria-live": "polite" });
    const bar = element("div", { class: "bar", role: "toolbar", "aria-label": "Choices and zoom" });
    const area = element("div", { class: "panels" });
    const fillBar = () => {
      const choices = keys.map((key) => {
        const found = [...new Set(points.map((point) => point[key]))].map((value) => [value, value]);
        return select(key, [[ALL, "all"], ...found], group.choices[key], (value) => choose(group, key, value));
      });
      if (repeats.length > 1) {
        const named = repeats.map((r) => [String(r), `${r + 1}${String(r) in data.seeds ? ` (seed ${data.seeds[r]})` : ""}`]);
        choices.push(select("Repeat", [[TYPICAL, "median goodput"], [ALL, "all"], ...named], group.choices.Repeat ?? TYPICAL, (value) => choose(group, "Repeat", value)));
      }
      bar.replaceChildren(
        ...choices,
        element("span", { class: "buttons" },
          button("−", "Zoom out", () => zoom(group, STEP * STEP)),
          button("+", "Zoom in", () => zoom(group, 1 / (STEP * STEP))),
          button("◂", "Earlier", () => pan(group, -0.25)),
          button("▸", "Later", () => pan(group, 0.25)),
          button("Reset", "Show all times", () => reset(group))),
        instant,
      );
    };
    let panels = [], isStale = false, isSeen = false;
    const width = () => Math.max(260, area.clientWidth);
    figure.rebuild = () => {
      if (!isSeen) return;
      const fits = ({ point }) => keys.every((key) => group.choices[key] === ALL || point[key] === group.choices[key]);
      const kept = data.panels.filter(fits);
      for (const { u } of panels) u?.destroy();
      const title = ({ title, point }) => [title, ...keys.filter((key) => group.choices[key] === ALL).map((key) => `${key} ${point[key]}`)].join(", ");
      panels = kept.map((panel) => makePanel(figure, panel, title(panel), panel === kept.at(-1)));
      area.replaceChildren(...panels.map(({ root }) => root));
      for (const panel of panels) panel.build(width());
      area.style.minHeight = "";
      refresh();
      fillBar();
      figure.point();
    };
    const refresh = () => {
      const ranges = panels.map((panel) => panel.look());
      const all = [Math.min(...ranges.map(([low]) => low)), Math.max(...ranges.map(([, high]) => high))];
      panels.forEach((panel, n) => panel.refresh(data.shared ? all : ranges[n]));
    };
    figure.stale = () => {
      if (isStale || !isSeen) return;
      isStale = true;
      requestAnimationFrame(() => {
        isStale = false;
        refresh();
        figure.point();
      });
    };
    figure.point = () => {
      instant.textContent = group.at === null ? "" : `${number(group.at, INSTANT)} s`;
      for (const panel of panels) panel.point();
    };
    figure.say = ({ names }) => {
      spoken.textContent = `${number(group.at ?? group.range[0], INSTANT)} s: ${names.map(([line, { textContent }]) => `${line.name} ${textContent}`).join(", ")}`;
    };
    figure.see = () => {
      if (isSeen) return;
      isSeen = true;
      figure.rebuild();
    };
    group.members.push(figure);
    plot.replaceChildren(bar, area, spoken);
    if (data.note) plot.append(element("p", { class: "note" }, data.note));
    // Keeps the place of panels that are not drawn yet.
    area.style.minHeight = `${data.panels.filter(({ point }) => keys.every((key) => [ALL, point[key]].includes(group.choices[key]))).length * (HEIGHT + 40)}px`;
    new ResizeObserver(() => {
      for (const { u } of panels) if (u && u.width !== width()) u.setSize({ width: width(), height: u.height });
    }).observe(area);
    return figure;
  };

  let armed = true, scrolled = -Infinity;
  addEventListener("scroll", () => { scrolled = performance.now(); armed = false; }, { passive: true });
  const plots = [...document.querySelectorAll("[data-series]")];
  const figures = new Map(plots.map((plot) => [plot, makeFigure(plot)]));
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) if (isIntersecting) (observer.unobserve(target), figures.get(target).see());
    },
    { rootMargin: "400px" },
  );
  plots.forEach((plot) => observer.observe(plot));
  addEventListener("beforeprint", () => figures.forEach((figure) => figure.see()));
  dark.addEventListener("change", () => figures.forEach((figure) => figure.rebuild()));
}
