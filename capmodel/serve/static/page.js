import { chart } from "/chart.js";

const form = document.getElementById("controls");
const field = (name) => form.elements.namedItem(name);
const NUMBERS = ["concurrency", "offload_tib", "gpu_hour_usd", "input_usd", "cached_usd", "output_usd"];
const state = { curve: null, cliff: null, asked: 0, timer: 0, frame: 0 };

function query() {
  const asked = new URLSearchParams();
  asked.set("model", field("model").value);
  asked.set("node", `${field("count").value}x${field("part").value}`);
  asked.set("workload", field("workload").value);
  for (const name of NUMBERS) asked.set(name, field(name).value);
  return asked;
}

function restore(text) {
  const asked = new URLSearchParams(text);
  const [count, ...part] = (asked.get("node") ?? "8xB300").split("x");
  field("count").value = count;
  const given = { model: "kimi-k3", workload: "agentic-coding", ...Object.fromEntries(asked) };
  for (const [name, value] of Object.entries({ ...given, part: part.join("x") })) {
    const control = field(name);
    if (!control || control.type === "number" && name === "count") continue;
    if (control.tagName === "SELECT" && ![...control.options].some((o) => o.value === value)) {
      fail(`${name} ${value} is not in the catalog.`);
      continue;
    }
    // A link may hold more sessions than the slider's usual end.
    if (control.type === "range" && Number(value) > Number(control.max)) control.max = value;
    control.value = value;
  }
}

function label() {
  const text = {
    concurrency: field("concurrency").value,
    offload_tib: Number(field("offload_tib").value) ? `${field("offload_tib").value} TiB` : "none",
    gpu_hour_usd: Number(field("gpu_hour_usd").value)
      ? `$${Number(field("gpu_hour_usd").value).toFixed(2)}` : "catalog",
  };
  for (const out of form.querySelectorAll("output")) out.textContent = text[out.htmlFor[0]];
}

function fail(message) {
  const box = document.getElementById("error");
  box.textContent = message;
  box.hidden = !message;
  document.body.classList.toggle("stale", Boolean(message));
}

async function ask(path, asked, number) {
  const reply = await fetch(`${path}?${asked}`);
  const body = await reply.json();
  if (number !== state.asked) return null;
  if (!reply.ok) throw new Error(body.error.message);
  return body;
}

function draw() {
  const { rows, ceiling, concurrency } = state.curve;
  const last = rows[rows.length - 1].concurrency;
  const edge = state.cliff;
  const cliff = edge && edge.concurrency !== null
    ? [edge.low ?? edge.concurrency, edge.high ?? last] : null;
  const point = rows.find((row) => row.concurrency === concurrency);
  const place = document.getElementById("charts");
  const width = Math.max(place.clientWidth, 240);
  const scale = width < 480 ? 0.65 : 1;
  const make = (name, title, key, height, format, top) => chart({
    name, title, width, height: Math.round(height * scale), last, cliff, format, ceiling: top,
    points: rows.map((row) => [row.concurrency, row[key]]), marked: [concurrency, point[key]],
  });
  const short = (v) => (v >= 1000 ? `${v / 1000}k` : String(Number(v.toPrecision(3))));
  const charts = [
    make("output", "Output [tokens/s] over live sessions", "output_tokens_per_s", 260, short),
    make("hits", "Hit rate, dashed: an infinite cache", "hit_rate", 130,
      (v) => `${Math.round(100 * v)}%`, ceiling || undefined),
  ];
  if (point.usd_per_mtok !== null) {
    charts.push(make("cost", "Cost [USD per 1e6 tokens]", "usd_per_mtok", 130, short));
  }
  place.replaceChildren(...charts);
}

function write(body) {
  document.getElementById("headline").textContent = body.headline;
  document.getElementById("command").textContent = body.command;
  const [[kind, text], ...rest] = body.screen;
  document.getElementById("answer").textContent = `${kind}: ${text}`;
  const lines = rest.map(([name, value]) => {
    const row = document.createElement("tr");
    const head = document.createElement("th");
    const cell = document.createElement("td");
    head.scope = "row";
    head.textContent = name;
    cell.textContent = value;
    row.append(head, cell);
    return row;
  });
  document.querySelector("#screen tbody").replaceChildren(...lines);
}

async function renew() {
  const number = ++state.asked;
  const asked = query();
  history.replaceState(null, "", `?${asked}`);
  try {
    const body = await ask("/api/curve", asked, number);
    if (!body) return;
    state.curve = body;
    fail("");
    draw();
    clearTimeout(state.timer);
    // The words cost ten times the curve: they follow when the hand rests.
    state.timer = setTimeout(() => words(asked, number), 150);
  } catch (error) {
    if (number === state.asked) fail(error.message);
  }
}

async function words(asked, number) {
  try {
    const body = await ask("/api/screen", asked, number);
    if (!body) return;
    state.cliff = body.cliff;
    write(body);
    draw();
    document.body.dataset.shown = asked.toString();
  } catch (error) {
    if (number === state.asked) fail(error.message);
  }
}

form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("input", () => {
  label();
  cancelAnimationFrame(state.frame);
  state.frame = requestAnimationFrame(renew);
});
addEventListener("resize", () => state.curve && draw());
document.getElementById("share").addEventListener("click", async (event) => {
  const button = event.currentTarget;
  try {
    await navigator.clipboard.writeText(location.href);
    button.textContent = "Link copied";
  } catch {
    button.textContent = "The address bar holds the link";
  }
});

const offered = await (await fetch("/api/choices")).json();
for (const [name, list] of [["model", offered.models], ["part", offered.accelerators],
  ["workload", offered.workloads]]) {
  field(name).replaceChildren(...list.map((text) => new Option(text, text)));
}
restore(location.search);
label();
renew();
