// Plays the frames of a radio network. `data.frames` holds numbers named by `data.frame`, in the order
// in which frames begin; times are nanoseconds from the beginning of the span.
{
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const frames = data.frames.map((row) => Object.fromEntries(data.frame.map((name, at) => [name, row[at]])));
  const LOST = "#a40e26", INK = "#1f2328", SOFT = "#59636e", FAINT = "#d0d7de";
  // Dark enough to be told from white, and each is written next to its frame as well.
  const CLASSES = {
    rts: ["#b07500", "RTS: asks for the medium"],
    cts: ["#b0578d", "CTS: grants it"],
    data: ["#0072b2", "data towards the receiver"],
    answer: ["#3f9bd1", "data frame with a transport's acknowledgement"],
    ack: ["#008060", "ACK of the MAC"],
    broadcast: ["#6e4b2a", "routing and ARP"],
  };
  const LEVELS = ["#8c2d04", "#cc4c02", "#ec7014", "#fe9929", "#fed98e", "#e5f5e0", "#a1d99b"];
  const SPEEDS = [0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500];
  const ROWS = 12, GLOW_S = 0.35;
  const state = { now: 0, playing: false, speed: 5, last: 0, width: 0 };

  const label = (frame) => {
    const kind = data.kinds[frame.kind];
    if (kind === "broadcast" || (kind === "data" && frame.flow === null)) return "broadcast";
    return kind === "data" && frame.reverse ? "answer" : kind;
  };
  for (const frame of frames) frame.class = label(frame);
  const words = (frame) =>
    ({ rts: "RTS", cts: "CTS", data: "data", answer: "data", ack: "ACK", broadcast: frame.to === null ? "broadcast" : "routing" })[frame.class];
  const packet = (frame) => {
    if (frame.flow === null) return "";
    const bare = frame.reverse ? "acknowledgement" : "without data";
    const what = frame.seq === null ? bare : `from byte ${frame.seq}`;
    return `flow ${frame.flow}, ${what}` + (frame.mark === null ? "" : `, marked ${frame.mark} of ${data.levels}`);
  };
  const outcome = (frame) => {
    if (frame.end > state.now) return frame.start > state.now ? "" : "on the air";
    if (frame.to === null) return `read by ${frame.readers}`;
    return frame.readers ? "read" : "✕ not read";
  };
  const isLost = (frame) => frame.readers === 0;
  /** The index of the first frame that begins after `time`. */
  const after = (time) => {
    let low = 0, high = frames.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (frames[middle].start > time) high = middle;
      else low = middle + 1;
    }
    return low;
  };
  const longest = frames.reduce((most, frame) => Math.max(most, frame.end - frame.start), 0);
  /** The frames that are on the air at some time between two. */
  const between = (from, to) => {
    const found = [];
    for (let at = after(to) - 1; at >= 0 && frames[at].start >= from - longest; at--) {
      if (frames[at].end > from) found.push(frames[at]);
    }
    return found.reverse();
  };

  // Where nodes are.
  const place = (node) => {
    const seen = data.places && data.places[node];
    if (!seen || !seen.length) return data.nodes[node];
    const next = seen.findIndex(([time]) => time > state.now);
    if (next === 0) return seen[0].slice(1);
    if (next < 0) return seen[seen.length - 1].slice(1);
    const [[t0, x0, y0], [t1, x1, y1]] = [seen[next - 1], seen[next]];
    const share = (state.now - t0) / (t1 - t0);
    return [x0 + (x1 - x0) * share, y0 + (y1 - y0) * share];
  };
  const everywhere = [...data.nodes, ...(data.places || []).flat().map((seen) => seen.slice(1))];
  const ground = [0, 1].map((axis) => everywhere.reduce(([low, high], at) => [Math.min(low, at[axis]), Math.max(high, at[axis])], [Infinity, -Infinity]));
  const margin = data.read_m * 1.08;

  /** A canvas of `height` CSS pixels, as sharp as the screen. */
  const surface = (canvas, height) => {
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.style.height = `${height}px`;
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = "12px system-ui, Arial, sans-serif";
    return [pen, width];
  };
  const text = (pen, words, x, y, colour, align = "center") => {
    pen.textAlign = align;
    pen.lineWidth = 3;
    pen.strokeStyle = "white";
    pen.strokeText(words, x, y);
    pen.fillStyle = colour;
    pen.fillText(words, x, y);
  };
  const cross = (pen, x, y, size) => {
    pen.strokeStyle = LOST;
    pen.lineWidth = 3;
    pen.beginPath();
    pen.moveTo(x - size, y - size);
    pen.lineTo(x + size, y + size);
    pen.moveTo(x - size, y + size);
    pen.lineTo(x + size, y - size);
    pen.stroke();
  };

  // The mark that each node wrote last.
  const markOf = () => {
    const marks = new Map();
    if (!data.levels) return marks;
    for (let at = after(state.now) - 1, left = 4000; at >= 0 && left > 0; at--, left--) {
      const frame = frames[at];
      if (frame.mark !== null && !frame.reverse && !marks.has(frame.node)) marks.set(frame.node, frame.mark);
    }
    return marks;
  };
  const levelColour = (level) => LEVELS[Math.round(((level - 1) / Math.max(1, data.levels - 1)) * (LEVELS.length - 1))];

  const arrow = (pen, from, to, colour, isDashed, radius) => {
    const angle = Math.atan2(to[1] - from[1], to[0] - from[0]);
    const [x0, y0] = [from[0] + Math.cos(angle) * radius, from[1] + Math.sin(angle) * radius];
    const [x1, y1] = [to[0] - Math.cos(angle) * (radius + 3), to[1] - Math.sin(angle) * (radius + 3)];
    pen.strokeStyle = pen.fillStyle = colour;
    pen.lineWidth = 3;
    pen.setLineDash(isDashed ? [6, 5] : []);
    pen.beginPath();
    pen.moveTo(x0, y0);
    pen.lineTo(x1, y1);
    pen.stroke();
    pen.setLineDash([]);
    pen.beginPath();
    pen.moveTo(x1 + Math.cos(angle) * 3, y1 + Math.sin(angle) * 3);
    for (const turn of [2.6, -2.6]) pen.lineTo(x1 + Math.cos(angle + turn) * 11, y1 + Math.sin(angle + turn) * 11);
    pen.fill();
  };

  const drawMap = () => {
    const wide = ground[0][1] - ground[0][0] + 2 * margin, high = ground[1][1] - ground[1][0] + 2 * margin;
    const room = $("map").clientWidth, scale = Math.min(room / wide, 400 / high);
    const [pen, width] = surface($("map"), Math.round(high * scale) + 24);
    const left = (width - wide * scale) / 2;
    const at = (node) => {
      const [x, y] = place(node);
      return [left + (x - ground[0][0] + margin) * scale, 8 + (ground[1][1] - y + margin) * scale];
    };
    const spots = data.nodes.map((_, node) => at(node));
    const radius = Math.max(7, Math.min(15, 60 * scale));
    drawScale(pen, width, Math.round(high * scale) + 12, scale);
    const glow = state.playing ? GLOW_S * state.speed * 1e6 : 0;
    const shown = between(state.now - glow, state.now);
    const current = shown.filter((frame) => frame.end > state.now);
    if ($("reach").checked) for (const frame of current) drawReach(pen, spots[frame.node], CLASSES[frame.class][0], scale);
    const marks = markOf();
    // What matters now lies on top.
    const weight = (node) => (ends(node) ? 1 : 0) + (current.some((frame) => frame.node === node || frame.to === node) ? 2 : 0);
    const order = spots.map((_, node) => [weight(node), node]).sort((one, other) => one[0] - other[0] || one[1] - other[1]);
    for (const [, node] of order) drawNode(pen, spots[node], node, radius, marks, current);
    for (const frame of shown) {
      pen.globalAlpha = frame.end > state.now ? 1 : 0.3;
      drawFrame(pen, frame, spots, radius);
    }
    pen.globalAlpha = 1;
    for (const [time, , kind, , node] of data.events) {
      if (kind === "dropped" && node !== null && time <= state.now && time > state.now - Math.max(glow, 2e6)) {
        text(pen, "packet dropped", spots[node][0], spots[node][1] - radius - 20, LOST);
      }
    }
  };
  const drawScale = (pen, width, y, scale) => {
    const metres = [10, 20, 50, 100, 200, 500, 1000, 2000].find((length) => length * scale > 60) || 5000;
    pen.fillStyle = SOFT;
    pen.fillRect(12, y, metres * scale, 2);
    text(pen, `${metres} m`, 16 + metres * scale, y + 4, SOFT, "left");
  };
  const drawReach = (pen, [x, y], colour, scale) => {
    pen.fillStyle = colour;
    pen.globalAlpha = 0.1;
    pen.beginPath();
    pen.arc(x, y, data.read_m * scale, 0, 7);
    pen.fill();
    pen.globalAlpha = 0.7;
    pen.strokeStyle = colour;
    pen.lineWidth = 1;
    pen.stroke();
    pen.setLineDash([3, 5]);
    pen.beginPath();
    pen.arc(x, y, data.sense_m * scale, 0, 7);
    pen.stroke();
    pen.setLineDash([]);
    pen.globalAlpha = 1;
  };
  const ends = (node) => {
    const found = [];
    for (const flow of data.flows) {
      if (flow.from === node) found.push(`sender${data.flows.length > 1 ? `, flow ${flow.flow}` : ""}`);
      if (flow.to === node) found.push(`receiver${data.flows.length > 1 ? `, flow ${flow.flow}` : ""}`);
    }
    return found.length > 2 ? `${found.length} ends` : found.join("; ");
  };
  const drawNode = (pen, [x, y], node, radius, marks, current) => {
    const sends = current.find((frame) => frame.node === node);
    pen.fillStyle = sends ? CLASSES[sends.class][0] : "white";
    pen.strokeStyle = INK;
    pen.lineWidth = ends(node) ? 3 : 1.5;
    pen.beginPath();
    pen.arc(x, y, radius, 0, 7);
    pen.fill();
    pen.stroke();
    pen.fillStyle = sends ? "white" : INK;
    pen.textAlign = "center";
    pen.font = `${radius < 10 ? 9 : 12}px system-ui, Arial, sans-serif`;
    pen.fillText(node, x, y + 4);
    pen.font = "12px system-ui, Arial, sans-serif";
    const mark = marks.get(node);
    if (mark !== undefined) {
      pen.fillStyle = levelColour(mark);
      pen.strokeStyle = INK;
      pen.lineWidth = 1;
      pen.fillRect(x - 8, y + radius + 4, 16, 16);
      pen.strokeRect(x - 8, y + radius + 4, 16, 16);
      pen.fillStyle = mark <= data.levels / 2 ? "white" : INK;
      pen.fillText(mark, x, y + radius + 16);
    }
    if (ends(node)) text(pen, ends(node), x, y + radius + (data.levels ? 34 : 17), INK);
  };
  const drawFrame = (pen, frame, spots, radius) => {
    const from = spots[frame.node], [colour] = CLASSES[frame.class];
    if (frame.to === null) {
      const share = Math.min(1, (state.now - frame.start) / Math.max(1, frame.end - frame.start));
      pen.strokeStyle = colour;
      pen.lineWidth = 3;
      pen.beginPath();
      pen.arc(from[0], from[1], radius + 6 + share * radius, 0, 7);
      pen.stroke();
      text(pen, words(frame), from[0], from[1] - 2 * radius - 12, colour);
      return;
    }
    const to = spots[frame.to], apart = Math.hypot(to[0] - from[0], to[1] - from[1]) || 1;
    arrow(pen, from, to, colour, isLost(frame), radius);
    const middle = [(from[0] + to[0]) / 2, (from[1] + to[1]) / 2];
    const more = frame.class === "answer" && frame.seq === null ? " (acknowledgement)" : frame.seq === null ? "" : ` ${frame.seq}`;
    const name = words(frame) + (apart > 130 && words(frame) === "data" ? more : "");
    text(pen, name, middle[0], middle[1] - 8, colour);
    if (isLost(frame)) cross(pen, to[0] + (from[0] - to[0]) / apart * (radius + 12), to[1] + (from[1] - to[1]) / apart * (radius + 12), 6);
  };

  // The frames of each node over a piece of time around now.
  const senders = [...new Set(frames.map((frame) => frame.node))].sort((one, other) => one - other);
  const lane = new Map(senders.map((node, at) => [node, at]));
  const LEFT = 64, TOP = 20;
  const windowed = () => {
    const span = Math.min(data.span, 40e6);
    const from = Math.max(0, Math.min(data.span - span, state.now - span / 2));
    return [from, span];
  };
  const drawLanes = () => {
    const step = Math.max(5, Math.min(20, Math.floor(400 / senders.length)));
    const height = TOP + senders.length * step + 6;
    const [pen, width] = surface($("lanes"), height);
    const [from, span] = windowed(), scale = (width - LEFT - 8) / span;
    const x = (time) => LEFT + (time - from) * scale;
    for (const node of senders) {
      const y = TOP + lane.get(node) * step;
      pen.fillStyle = FAINT;
      pen.fillRect(LEFT, y + step - 1, width - LEFT - 8, 0.5);
      if (step >= 10) text(pen, `node ${node}`, LEFT - 8, y + step - 6, SOFT, "right");
    }
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, 0, width - LEFT - 8, height);
    pen.clip();
    const tick = [1e3, 1e4, 1e5, 1e6, 2e6, 5e6, 1e7].find((apart) => apart * scale > 55) || 2e7;
    for (let time = Math.ceil(from / tick) * tick; time <= from + span; time += tick) {
      pen.fillStyle = FAINT;
      pen.fillRect(x(time), TOP - 4, 1, height);
      text(pen, `${+(time / 1e6).toFixed(3)}${time === 0 ? " ms" : ""}`, x(time), 12, SOFT);
    }
    for (const frame of between(from, from + span)) {
      const y = TOP + lane.get(frame.node) * step + 1, long = Math.max(1.5, (frame.end - frame.start) * scale);
      pen.fillStyle = CLASSES[frame.class][0];
      if (isLost(frame)) {
        pen.globalAlpha = 0.35;
        pen.fillRect(x(frame.start), y, long, step - 3);
        pen.globalAlpha = 1;
        cross(pen, x(frame.start) + long / 2, y + (step - 3) / 2, Math.min(4, step / 4));
      } else {
        pen.fillRect(x(frame.start), y, long, step - 3);
      }
      if (long > 70 && step >= 14) {
        pen.fillStyle = isLost(frame) ? INK : "white";
        pen.textAlign = "left";
        pen.font = "11px system-ui, Arial, sans-serif";
        pen.fillText(`${words(frame)}${frame.to === null ? "" : ` to ${frame.to}`}${frame.mark === null ? "" : `, mark ${frame.mark}`}`, x(frame.start) + 5, y + step - 7, long - 8);
        pen.font = "12px system-ui, Arial, sans-serif";
      }
    }
    pen.fillStyle = INK;
    pen.fillRect(x(state.now) - 1, 0, 2, height);
    pen.restore();
  };

  // The same in words: frames and events up to now, the latest first.
  const eventsBefore = () => data.events.filter(([time]) => time <= state.now).slice(-ROWS);
  const cell = (row, words, name = "") => {
    const made = row.insertCell();
    made.textContent = words;
    made.className = name;
  };
  const writeList = () => {
    const end = after(state.now);
    const rows = frames.slice(Math.max(0, end - ROWS), end).map((frame) => [frame.start, frame, null]);
    for (const event of eventsBefore()) rows.push([event[0], null, event]);
    rows.sort((one, other) => one[0] - other[0]);
    const body = document.createElement("tbody");
    for (const [time, frame, event] of rows.slice(-ROWS).reverse()) {
      const row = body.insertRow();
      cell(row, (time / 1e6).toFixed(3), "number");
      if (frame) {
        row.className = frame.end > state.now ? "on" : "over";
        cell(row, frame.to === null ? `${frame.node} → all` : `${frame.node} → ${frame.to}`);
        cell(row, words(frame));
        cell(row, packet(frame));
        cell(row, outcome(frame), isLost(frame) && frame.to !== null && frame.end <= state.now ? "lost" : "");
      } else {
        const [, flow, kind, detail, node] = event;
        row.className = "event";
        cell(row, node === null ? "" : node);
        cell(row, kind);
        cell(row, `flow ${flow}`);
        cell(row, detail || "");
      }
    }
    for (let left = ROWS - body.rows.length; left > 0; left--) {
      const row = body.insertRow();
      for (let column = 0; column < 5; column++) cell(row, "");
    }
    $("list").tBodies[0].replaceWith(body);
  };

  const draw = () => {
    drawMap();
    drawLanes();
    writeList();
    $("time").value = Math.round(state.now / 1e3);
    $("now").textContent = `${(state.now / 1e6).toFixed(3)} ms of ${+(data.span / 1e6).toFixed(3)}`;
    $("play").textContent = state.playing ? "❚❚ pause" : "▶ play";
  };
  const seek = (time) => {
    state.now = Math.max(0, Math.min(data.span, time));
    draw();
  };
  const tick = (clock) => {
    if (!state.playing) return;
    const passed = Math.max(0, Math.min(100, clock - state.last));
    state.last = clock;
    state.now = Math.min(data.span, state.now + passed * state.speed * 1e3);
    state.playing = state.now < data.span;
    draw();
    requestAnimationFrame(tick);
  };
  const play = (wanted) => {
    const starts = wanted && !state.playing;
    state.playing = wanted;
    if (starts && state.now >= data.span) state.now = 0;
    state.last = performance.now();
    draw();
    if (starts) requestAnimationFrame(tick);
  };
  /** To the next frame that `fits`, or the one before; just after it has begun, so that it is seen. */
  const step = (direction, fits = () => true) => {
    play(false);
    let at = direction > 0 ? after(state.now) : after(state.now) - 1;
    while (frames[at] && (!fits(frames[at]) || (direction < 0 && frames[at].start >= state.now))) at += direction;
    seek(frames[at] ? frames[at].start : direction > 0 ? data.span : 0);
  };
  const nextLost = () => step(1, (frame) => isLost(frame) && frame.to !== null);
  const speed = (change) => {
    const at = SPEEDS.indexOf(state.speed) + change;
    state.speed = SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, at))];
    $("speed").value = state.speed;
  };
  const toggleReach = () => {
    $("reach").checked = !$("reach").checked;
    draw();
  };

  const KEYS = {
    " ": () => play(!state.playing),
    ArrowRight: () => step(1),
    ArrowLeft: () => step(-1),
    x: nextLost,
    "[": () => speed(-1),
    "]": () => speed(1),
    Home: () => seek(0),
    End: () => seek(data.span),
    r: toggleReach,
  };
  document.addEventListener("keydown", (event) => {
    const isOwn = event.target.matches("select, input, button") && !["x", "[", "]", "r"].includes(event.key);
    const isKept = isOwn && !(event.target.matches("button") && event.key !== " ");
    if (KEYS[event.key] && !isKept && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      KEYS[event.key]();
    }
  });
  $("first").onclick = () => seek(0);
  $("back").onclick = () => step(-1);
  $("play").onclick = () => play(!state.playing);
  $("forward").onclick = () => step(1);
  $("lost").onclick = nextLost;
  $("reach").onchange = draw;
  $("speed").onchange = () => (state.speed = +$("speed").value);
  $("time").max = Math.round(data.span / 1e3);
  $("time").oninput = () => seek($("time").value * 1e3);
  $("lanes").onclick = (event) => {
    const [from, span] = windowed();
    seek(from + ((event.offsetX - LEFT) / ($("lanes").clientWidth - LEFT - 8)) * span);
  };
  for (const each of SPEEDS) $("speed").add(new Option(`${each} ms per second`, each, false, each === state.speed));

  const key = (swatch, words) => {
    const item = document.createElement("li");
    item.append(swatch, words);
    $("legend").append(item);
  };
  const swatch = (colour) => {
    const made = document.createElement("i");
    made.style.background = colour;
    return made;
  };
  const sign = (words, colour) => {
    const made = document.createElement("b");
    made.textContent = words;
    made.style.color = colour;
    return made;
  };
  for (const [colour, words] of Object.values(CLASSES)) key(swatch(colour), words);
  key(sign("- - ✕", LOST), "not read: it collided at its reader, or that is out of reach");
  key(sign("○", SOFT), `filled as far as it can be read (${data.read_m} m), dashed as far as it is sensed (${+data.sense_m.toFixed(1)} m)`);
  if (data.levels) {
    const made = sign(`1 … ${data.levels}`, INK);
    key(made, `below a node: the mark on the packet it sent last, 1: slow down, ${data.levels}: speed up`);
  }
  /** `#t=12.5` in the address is a time in milliseconds. */
  const fromAddress = () => {
    const asked = /t=([\d.]+)/.exec(location.hash);
    seek(asked ? +asked[1] * 1e6 : 0);
  };
  addEventListener("hashchange", fromAddress);
  addEventListener("resize", draw);
  fromAddress();
}
