// Line charts as SVG elements; texts go in as text, never as markup.
const NS = "http://www.w3.org/2000/svg";
const BOX = { left: 48, right: 14, top: 24, bottom: 22 };

function element(name, attributes, text) {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

export function ticks(top) {
  if (!(top > 0)) return [0, 1];
  const step = 10 ** Math.floor(Math.log10(top / 2));
  const width = [1, 2, 5, 10].map((n) => n * step).find((w) => top / w <= 4);
  const count = Math.ceil(top / width - 1e-9);
  return Array.from({ length: count + 1 }, (_, index) => index * width);
}

// points: [x, y] pairs; marked: the pair in focus; cliff: [low, high] or null.
// width and height are in pixels of the screen, so that texts keep their size on every screen.
export function chart({ title, points, marked, width, height, cliff, ceiling, last, format, name }) {
  const rows = points.filter(([, y]) => y !== null);
  const marks = ticks(ceiling ?? Math.max(...rows.map(([, y]) => y), 0));
  const top = marks[marks.length - 1];
  const x = (c) => BOX.left + ((width - BOX.left - BOX.right) * c) / last;
  const y = (v) => height - BOX.bottom - ((height - BOX.top - BOX.bottom) * v) / top;
  const svg = element("svg", {
    viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": title, "data-chart": name,
  });
  if (cliff) {
    const right = Math.min(cliff[1] + 0.5, last);
    if (cliff[0] - 0.5 < right) svg.append(element("rect", {
      class: "cliff", x: x(cliff[0] - 0.5), width: x(right) - x(cliff[0] - 0.5), y: BOX.top,
      height: height - BOX.top - BOX.bottom,
    }));
  }
  for (const value of marks) {
    svg.append(
      element("line", { class: "grid", x1: BOX.left, x2: width - BOX.right, y1: y(value), y2: y(value) }),
      element("text", { x: BOX.left - 6, y: y(value) + 4, "text-anchor": "end" }, format(value)),
    );
  }
  for (const c of ticks(last).filter((c) => c <= last && Number.isInteger(c))) {
    svg.append(element("text", { x: x(c), y: height - 5, "text-anchor": "middle" }, c));
  }
  if (ceiling) svg.append(element("line", {
    class: "ceiling", x1: BOX.left, x2: width - BOX.right, y1: y(ceiling), y2: y(ceiling),
  }));
  const path = rows.map(([c, v], i) => `${i ? "L" : "M"}${x(c).toFixed(1)} ${y(v).toFixed(1)}`);
  svg.append(element("path", { class: "line", d: path.join("") }));
  if (marked && marked[1] !== null) {
    svg.append(element("circle", { class: "point", cx: x(marked[0]), cy: y(marked[1]), r: 6 }));
  }
  svg.append(element("text", { class: "title", x: BOX.left, y: 15 }, title));
  return svg;
}
