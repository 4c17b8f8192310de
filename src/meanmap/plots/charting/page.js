// Draws the charts of a page with Observable Plot, lets values be read by mouse and keyboard, and sorts tables.
"use strict";
(() => {
  const { charts, colours } = JSON.parse(document.getElementById("facts").textContent);
  const digits = (v) => (v !== 0 && (Math.abs(v) < 1e-3 || Math.abs(v) >= 1e7) ? v.toExponential(3) : String(+v.toPrecision(4)));
  const element = (tag, text, attributes = {}) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  };
  const cut = (text, most) => (text.length > most ? text.slice(0, most - 1) + "…" : text);

  // ---- values in words ------------------------------------------------------------------------------------------

  const written = (axis, value) => {
    const named = (axis.ticks || []).find(([place]) => Math.abs(place - value) < 0.5);
    if (named) return named[1];
    return axis.time ? new Date(value).toISOString().slice(0, 16).replace("T", " ") : digits(value);
  };
  const named = (axis, text) => (axis.label ? `${axis.label} ${text}` : text);

  // What can be pointed at: a place and what is said there; bars and lines of several series share a place.
  function items(panel) {
    const found = new Map();
    const add = (key, x, y, head, said) => {
      const item = found.get(key) || { x, y, head, said: [] };
      item.said.push(said);
      item.y = Math.max(item.y, y);
      found.set(key, item);
    };
    const { x: ax, y: ay } = panel;
    panel.marks.forEach((mark, m) => {
      const series = mark.series ? mark.series + ": " : "";
      const own = (i) => mark.text[i];
      const n = (mark.x || mark.x1 || mark.y || []).length;
      for (let i = 0; i < n; i++) {
        if (mark.kind === "bars") {
          const middle = (mark.x1[i] + mark.x2[i]) / 2;
          const tick = (ax.ticks || []).find(([place]) => Math.abs(place - middle) < 0.5);
          const head = tick ? named(ax, tick[1]) : named(ax, `${written(ax, mark.x1[i])} to ${written(ax, mark.x2[i])}`);
          const at = tick ? tick[0] : middle;
          add(`b${at}`, at, mark.y[i], head, series + (own(i) || named(ay, digits(mark.y[i]))));
        } else if (mark.kind === "line" || mark.kind === "area") {
          add(`l${mark.x[i]}`, mark.x[i], mark.y[i], named(ax, written(ax, mark.x[i])), series + (own(i) || named(ay, digits(mark.y[i]))));
        } else if (mark.kind === "dots" || mark.kind === "nodes") {
          const head = own(i) || `${named(ax, written(ax, mark.x[i]))}, ${named(ay, written(ay, mark.y[i]))}`;
          add(`${m}.${i}`, mark.x[i], mark.y[i], series + head, "");
        } else if (mark.kind === "ranges") {
          const ends = `${digits(mark.x[i])} (${digits(mark.x1[i])} to ${digits(mark.x2[i])})`;
          add(`${m}.${i}`, mark.x[i], mark.y[i], own(i) || `${series}${written(ay, mark.y[i])}: ${ends}`, "");
        } else if (mark.kind === "links" && own(i)) {
          add(`${m}.${i}`, (mark.x1[i] + mark.x2[i]) / 2, (mark.y1[i] + mark.y2[i]) / 2, own(i), "");
        } else if (mark.kind === "rules" && (series || own(i))) {
          const value = mark.x ? named(ax, written(ax, mark.x[i])) : named(ay, written(ay, mark.y[i]));
          add(`${m}.${i}`, mark.x ? mark.x[i] : undefined, mark.y ? mark.y[i] : undefined, own(i) || series + value, "");
        }
      }
    });
    return [...found.values()]
      .map((item) => ({ ...item, text: [item.head, ...item.said.filter(Boolean)].join("\n") }))
      .sort((a, b) => (a.x ?? -Infinity) - (b.x ?? -Infinity) || (b.y ?? 0) - (a.y ?? 0));
  }

  // ---- pictures -------------------------------------------------------------------------------------------------

  function marks(mark, panel) {
    const when = (v) => (panel.x.time ? new Date(v) : v);
    const colour = colours[(mark.colour || 0) % colours.length];
    const dash = mark.dashed ? "5 4" : undefined;
    const rows = d3.range((mark.x || mark.x1 || mark.y || []).length);
    const at = (name) => (i) => (name[0] === "x" ? when(mark[name][i]) : mark[name][i]);
    const clip = Boolean(panel.x.limits || panel.y.limits);
    switch (mark.kind) {
      case "bars":
        return [Plot.rect(rows, { x1: at("x1"), x2: at("x2"), y1: 0, y2: at("y"), fill: colour, fillOpacity: 0.5, stroke: colour, strokeOpacity: 0.7 })];
      case "line":
        return [Plot.line(rows, { x: at("x"), y: at("y"), stroke: colour, strokeWidth: 2, strokeDasharray: dash, clip })];
      case "area":
        return [Plot.areaY(rows, { x: at("x"), y1: 0, y2: at("y"), fill: colour, fillOpacity: 0.25, clip }), Plot.line(rows, { x: at("x"), y: at("y"), stroke: colour, clip })];
      case "band":
        return [Plot.areaY(rows, { x: at("x"), y1: at("y1"), y2: at("y2"), fill: colour, fillOpacity: 0.2, clip })];
      case "dots":
        return [Plot.dot(rows, { x: at("x"), y: at("y"), fill: colour, fillOpacity: 0.6, r: 3 })];
      case "ranges":
        return [Plot.ruleY(rows, { y: at("y"), x1: at("x1"), x2: at("x2"), stroke: colour, strokeWidth: 2, clip }), Plot.dot(rows, { x: at("x"), y: at("y"), fill: colour, r: 4, clip })];
      case "rules":
        return [mark.x ? Plot.ruleX(rows, { x: at("x"), stroke: colour, strokeDasharray: dash }) : Plot.ruleY(rows, { y: at("y"), stroke: colour, strokeDasharray: dash })];
      case "links": {
        const options = { x1: at("x1"), y1: at("y1"), x2: at("x2"), y2: at("y2"), stroke: colour, strokeWidth: 1.6, strokeDasharray: dash };
        return [mark.arrow ? Plot.arrow(rows, { ...options, insetEnd: 9, insetStart: 7, headLength: 9 }) : Plot.link(rows, options)];
      }
      default:
        return [Plot.dot(rows, { x: at("x"), y: at("y"), fill: colour, r: 6 })];
    }
  }

  // Names of nodes lie below links, so that no arrowhead is hidden; they stay inside the picture and off other names.
  function names(mark, width, height) {
    const place = (values, low, high) => d3.scaleLinear(d3.extent(values), [low, high]);
    const [across, upwards] = [place(mark.x, 40, width - 40), place(mark.y, height - 40, 58)];
    const placed = [];
    return d3.range(mark.x.length).map((i) => {
      const said = cut(mark.text[i].split("\n")[0], width < 500 ? 14 : 24);
      const half = Math.min(3.7 * said.length + 4, width / 2);
      const [x, y] = [Math.max(half, Math.min(width - half, across(mark.x[i]))), upwards(mark.y[i])];
      const sides = mark.above[i] ? [-15, 17] : [17, -15];
      const free = (dy) => placed.every((other) => Math.abs(other.x - x) > other.half + half || Math.abs(other.y - y - dy) > 14);
      const dy = sides.find(free) ?? sides[0];
      placed.push({ x, y: y + dy, half });
      return Plot.text([said], {
        x: [mark.x[i]], y: [mark.y[i]], text: (d) => d, dx: x - across(mark.x[i]), dy, fontSize: 13, fill: "currentColor", stroke: "var(--paper)", strokeWidth: 4,
      });
    });
  }

  function scale(axis, most, every = 1) {
    const found = { label: axis.label || null, type: axis.time ? "utc" : axis.log ? "log" : "linear" };
    if (axis.log) found.tickFormat = "~g"; // 0.2, not 200m
    if (axis.limits) found.domain = axis.time ? axis.limits.map((v) => new Date(v)) : axis.limits;
    if (axis.ticks) {
      const names = new Map(axis.ticks);
      const places = [...names.keys()];
      Object.assign(found, { domain: [d3.min(places) - 0.6, d3.max(places) + 0.6], ticks: places.filter((_, i) => i % every === 0), tickFormat: (v) => cut(names.get(v), most) });
    }
    return found;
  }

  function draw(panel, width, title) {
    const bare = !panel.x.label && !panel.x.ticks;
    const letters = d3.max(panel.y.ticks || [[0, "00000"]], ([, text]) => text.length);
    const most = Math.max(8, Math.floor((0.36 * width) / 7.4));
    const places = (panel.x.ticks || []).length;
    const room = (width - 70) / 7.4 / Math.max(1, places); // letters, of which one separates names
    const every = Math.max(1, Math.ceil(6 / room)); // some names are left out where all would be shorter than five letters
    const x = scale(panel.x, places ? Math.max(5, Math.floor(room * every) - 1) : 14, every);
    const y = scale(panel.y, most);
    if (panel.y.ticks) y.label = null;
    else if (!bare) y.grid = true;
    if (bare) x.axis = y.axis = null;
    if (bare) x.inset = y.inset = 30;
    else if (panel.marks.some((mark) => ["dots", "ranges", "rules"].includes(mark.kind))) x.inset = 7; // none is cut at the edge
    const listed = panel.marks.some((mark) => mark.kind === "ranges") && panel.y.ticks;
    const height = bare ? Math.min(420, Math.max(260, 0.7 * width)) : Math.max(listed ? 0 : 270, 26 * (panel.y.ticks || []).length + 80);
    return Plot.plot({
      width,
      height,
      marginLeft: bare ? 10 : panel.y.ticks ? Math.min(letters, most) * 7.4 + 14 : 52,
      marginBottom: bare ? 10 : 44,
      marginTop: 28,
      x: x.type === "linear" && !panel.x.ticks && !bare ? { ...x, ticks: Math.max(3, Math.min(8, Math.floor(width / 90))) } : x,
      y,
      style: { background: "transparent", color: "inherit", fontSize: "13px" },
      ariaLabel: title,
      marks: [...panel.marks.filter((m) => m.kind === "nodes").flatMap((m) => names(m, width, height)), ...panel.marks.flatMap((m) => marks(m, panel))],
    });
  }

  function legend(panel) {
    const seen = new Map(panel.marks.filter((m) => m.series).map((m) => [m.series, colours[(m.colour || 0) % colours.length]]));
    if (seen.size < 1) return null;
    const list = element("ul", undefined, { class: "legend" });
    for (const [name, colour] of seen) {
      const entry = element("li");
      entry.append(Object.assign(element("span"), { style: `background:${colour}` }), element("bdi", name));
      list.append(entry);
    }
    return list;
  }

  // ---- one chart: choices, drawing, pointing ---------------------------------------------------------------------

  function chart(figure) {
    const facts = charts[+figure.dataset.chart];
    const [drawing, said, note] = [".drawing", ".said", ".note"].map((name) => figure.querySelector(name));
    const details = figure.querySelector("details");
    const controls = [...figure.querySelectorAll(".controls select, .controls input")];
    const chosen = () => facts.panels[controls.reduce((sum, c, i) => sum * facts.controls[i].choices.length + +c.value, 0)];
    const handle = element("div", undefined, { class: "plot", role: "slider", tabindex: "0" });
    handle.setAttribute("aria-label", `${facts.title}: values, by arrow keys`);
    let shown, svg, points, at, ring;

    function point(i) {
      at = Math.max(0, Math.min(points.length - 1, i));
      const item = points[at];
      handle.setAttribute("aria-valuenow", at);
      handle.setAttribute("aria-valuetext", item.text);
      said.textContent = item.text;
      ring?.remove();
      if (item.px === undefined && item.py === undefined) return;
      const box = svg.viewBox.baseVal;
      const line = item.py === undefined || item.px === undefined;
      ring = d3.select(svg).append(line ? "line" : "circle").attr("class", "ring").attr("fill", "none").attr("stroke", "currentColor").attr("stroke-width", 2).node();
      const places = line
        ? item.px === undefined
          ? { x1: 0, x2: box.width, y1: item.py, y2: item.py }
          : { x1: item.px, x2: item.px, y1: 0, y2: box.height }
        : { cx: item.px, cy: item.py, r: 9 };
      for (const [name, value] of Object.entries(places)) ring.setAttribute(name, value);
    }

    function redraw() {
      const panel = chosen();
      const fresh = panel !== shown;
      shown = panel;
      svg = draw(panel, Math.max(260, figure.clientWidth - 32), facts.title);
      svg.setAttribute("aria-hidden", "true"); // the handle around it says its values
      svg.querySelectorAll("g[aria-label]").forEach((group) => group.removeAttribute("aria-label"));
      points = items(panel).filter((item) => item.text);
      const [sx, sy] = [svg.scale("x"), svg.scale("y")];
      for (const item of points) {
        item.px = item.x === undefined || !sx ? undefined : sx.apply(panel.x.time ? new Date(item.x) : item.x);
        item.py = item.y === undefined || !sy ? undefined : sy.apply(item.y);
      }
      handle.replaceChildren(svg);
      const names = legend(panel);
      drawing.replaceChildren(...(names ? [names] : []), handle);
      handle.setAttribute("aria-valuemin", 0);
      handle.setAttribute("aria-valuemax", Math.max(0, points.length - 1));
      handle.setAttribute("aria-valuenow", 0);
      handle.setAttribute("aria-valuetext", points.length ? points[0].text : "no values");
      if (!fresh) return;
      said.textContent = "Point at the picture, or press the arrow keys, to read values.";
      note.textContent = panel.note;
      if (details.open) values();
      else figure.querySelector(".values").replaceChildren();
    }

    function values() {
      const rows = points.map((item) => item.text.split("\n"));
      const table = element("table");
      const head = table.createTHead().insertRow();
      const width = d3.max(rows, (row) => row.length) || 1;
      for (let i = 0; i < width; i++) head.append(element("th", i ? `value ${i}` : "what", { scope: "col" }));
      const body = table.createTBody();
      for (const row of rows) {
        const line = body.insertRow();
        for (let i = 0; i < width; i++) line.insertCell().textContent = row[i] ?? "";
      }
      figure.querySelector(".values").replaceChildren(table);
      figure.querySelector(".values").setAttribute("tabindex", "0");
      sortable(table);
    }

    handle.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const unit = svg.viewBox.baseVal.width / box.width;
      const [x, y] = [(event.clientX - box.left) * unit, (event.clientY - box.top) * unit];
      const bars = shown.marks.some((mark) => mark.kind === "bars" || mark.kind === "line" || mark.kind === "area");
      const far = ({ px, py }) => (px === undefined ? (Math.abs(py - y) < 8 ? 0 : Infinity) : py === undefined ? Math.abs(px - x) + 4 : Math.hypot(px - x, bars ? (py - y) / 50 : py - y));
      if (points.length) point(d3.minIndex(points, far));
    });
    handle.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10, Home: -Infinity, End: Infinity }[event.key];
      if (step === undefined || !points.length) return;
      event.preventDefault();
      point(at === undefined ? (step > 0 && step < Infinity ? 0 : step > 0 ? points.length : 0) : at + step);
    });
    controls.forEach((control, i) => {
      control.addEventListener("input", () => {
        const choice = facts.controls[i].choices[+control.value];
        if (facts.controls[i].slider) {
          control.setAttribute("aria-valuetext", choice);
          control.nextElementSibling.textContent = choice;
        }
        at = undefined;
        redraw();
      });
    });
    details.addEventListener("toggle", () => details.open && values());
    redraw();
    let width = figure.clientWidth;
    new ResizeObserver(() => {
      if (figure.clientWidth === width) return;
      width = figure.clientWidth;
      redraw();
    }).observe(figure);
  }

  // ---- tables ---------------------------------------------------------------------------------------------------

  const number = (text) => {
    const found = text.replace(/[−–]/g, "-").match(/^[<>]?\s*([-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?)/i);
    return found ? parseFloat(found[1].replace(/,/g, "")) : text.trim() ? NaN : -Infinity;
  };

  function sortable(table) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, i) => {
      const button = element("button", undefined, { type: "button" });
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const rows = [...table.tBodies[0].rows].map((row) => [row, row.cells[i].textContent]);
        const numeric = rows.every(([, text]) => !Number.isNaN(number(text)));
        rows.sort(([, a], [, b]) => (up ? 1 : -1) * (numeric ? number(a) - number(b) || 0 : a.localeCompare(b)));
        table.tBodies[0].append(...rows.map(([row]) => row));
      });
    });
  }

  document.querySelectorAll("table.sortable").forEach(sortable);
  document.querySelectorAll("figure.chart").forEach(chart);
})();
