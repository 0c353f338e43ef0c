"use strict";
(() => {
  const root = document.documentElement;
  const page = JSON.parse(document.getElementById("charts").textContent);
  const begun = new Set();

  // `ast`: expressions are interpreted, not compiled, so the page forbids `eval`.
  // SVG: its colours are the stylesheet's variables, so light, dark and paper need no second drawing.
  const options = {mode: "vega-lite", ast: true, actions: false, renderer: "svg", tooltip: false};

  const draw = async (place) => {
    if (begun.has(place.id)) return;
    begun.add(place.id);
    try {
      // A row's name may take somewhat less than half of a panel, however narrow that is.
      const axisY = {labelLimit: Math.round(place.clientWidth * 0.44)};
      const axisX = {titleLimit: Math.round(place.clientWidth * 0.9)};
      await vegaEmbed(place, page.charts[place.id], {...options, config: {...page.config, axisX, axisY}});
    } catch (error) {
      place.classList.add("failed");
      place.textContent = `This chart could not be drawn: ${error.message}`;
      throw new Error(`${place.id}: ${error.message}`);
    }
  };

  const visible = (place) => !place.closest("details:not([open])");
  const drawVisible = () => Promise.all([...document.querySelectorAll(".plot")].filter(visible).map(draw));

  // What is folded has no width to draw into, and may be a great deal: it is drawn when it is unfolded.
  document.addEventListener("toggle", () => drawVisible().catch((error) => console.error(error.message)), true);

  let unfolded = [];
  addEventListener("beforeprint", () => {
    unfolded = [...document.querySelectorAll("details:not([open])")];
    for (const details of unfolded) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of unfolded) details.open = false;
  });

  // Sorting: numbers by what they are, words by the alphabet, and what is missing always last.
  const key = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.sort === undefined ? cell.textContent : Number(cell.dataset.sort);
  };
  const compare = (a, b, sign, numeric) => {
    if (typeof a === "number" && typeof b === "number") return sign * (a - b);
    if (numeric && typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
    return sign * String(a).localeCompare(String(b), "en", {numeric: true});
  };
  const sort = (head) => {
    const table = head.closest("table");
    const body = table.tBodies[0];
    const direction = head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", direction);
    const sign = direction === "ascending" ? 1 : -1;
    const rows = [...body.rows].map((row) => [key(row, head.cellIndex), row]);
    const numeric = rows.some(([value]) => typeof value === "number");
    rows.sort((a, b) => compare(a[0], b[0], sign, numeric));
    body.append(...rows.map(([, row]) => row));
  };
  for (const button of document.querySelectorAll("table.sortable th button")) {
    button.addEventListener("click", () => sort(button.closest("th")));
  }

  drawVisible().then(
    () => { root.dataset.ready = "true"; },
    (error) => { root.dataset.ready = `failed: ${error.message}`; },
  );
})();
