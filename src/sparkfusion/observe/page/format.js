// Numbers and elements. Text gets into the page by textContent only, so nothing in a model is ever taken for HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  for (const child of (children === undefined ? [] : [children]).flat()) {
    if (child !== null && child !== undefined) made.append(child);
  }
  return made;
}

const element = (tag, attributes, children) => fill(document.createElement(tag), attributes, children);
const drawn = (tag, attributes, children) => fill(document.createElementNS(SVG, tag), attributes, children);
const byId = (id) => document.getElementById(id);

function showCount(number) {
  if (number === null || number === undefined) return "";
  for (const [size, unit] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (number >= size) {
      const scaled = number / (unit === "k" ? 1e3 : size);
      return `${scaled >= 100 ? scaled.toFixed(0) : scaled.toFixed(1)} ${unit}`;
    }
  }
  return number.toLocaleString("en-US");
}

function showBytes(bytes) {
  if (bytes === null || bytes === undefined) return "";
  for (const [size, unit] of [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]) {
    if (bytes >= size) return `${(bytes / size).toFixed(bytes >= 100 * size ? 0 : 1)} ${unit}`;
  }
  return `${bytes} B`;
}

function showTime(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds >= 3600) return `${Math.floor(seconds / 3600)} h ${Math.round((seconds % 3600) / 60)} min`;
  if (seconds >= 100) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  if (seconds >= 1) return `${seconds.toFixed(seconds >= 10 ? 1 : 2)} s`;
  if (seconds >= 0.01) return `${(seconds * 1e3).toFixed(0)} ms`;
  return `${(seconds * 1e3).toFixed(1)} ms`;
}

const plural = (number, noun) => `${number.toLocaleString("en-US")} ${noun}${number === 1 ? "" : "s"}`;
const shorten = (text, length) => (text.length > length ? text.slice(0, length - 1) + "…" : text);

// ---- the tooltip

function showTip(event, lines) {
  const tip = byId("tip");
  tip.replaceChildren(...lines.filter(Boolean).map((line, index) => element(index ? "div" : "strong", {}, line)));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = Math.min(event.clientX + 14, window.innerWidth - box.width - 8);
  const below = event.clientY + 16;
  const top = below + box.height > window.innerHeight - 8 ? event.clientY - box.height - 12 : below;
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${Math.max(8, top)}px`;
}

const hideTip = () => { byId("tip").hidden = true; };
const withTip = (lines) => ({ onmousemove: (event) => showTip(event, lines()), onmouseleave: hideTip });
