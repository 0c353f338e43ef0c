"use strict";
(() => {
  const root = document.documentElement;
  const page = JSON.parse(document.getElementById("charts").textContent);
  const begun = new Set();
  // Charts that are drawn otherwise than the page says, by a reader's choice.
  const changed = new Map();

  // `ast`: expressions are interpreted, not compiled, so the page forbids `eval`.
  // SVG: its colours are the stylesheet's variables, so light, dark and paper need no second drawing.
  const options = {mode: "vega-lite", ast: true, actions: false, renderer: "svg", tooltip: false};

  const draw = async (place, again) => {
    if (begun.has(place.id) && again !== true) return;
    begun.add(place.id);
    try {
      // A row's name may take somewhat less than half of a panel, however narrow that is.
      const axisY = {labelLimit: Math.round(place.clientWidth * 0.44)};
      const axisX = {titleLimit: Math.round(place.clientWidth * 0.9)};
      await vegaEmbed(place, changed.get(place.id) ?? page.charts[place.id], {...options, config: {...page.config, axisX, axisY}});
    } catch (error) {
      place.classList.add("failed");
      place.textContent = `This chart could not be drawn: ${error.message}`;
      throw new Error(`${place.id}: ${error.message}`);
    }
  };

  const visible = (place) => !place.closest("details:not([open])");
  const drawVisible = () => Promise.all([...document.querySelectorAll(".plot")].filter(visible).map((place) => draw(place)));

  // What is folded has no width to draw into, and may be a great deal: it is drawn when it is unfolded.
  const drawUnfolded = () => drawVisible().catch((error) => console.error(error.message));
  document.addEventListener("toggle", drawUnfolded, true);

  let unfolded = [];
  addEventListener("beforeprint", () => {
    unfolded = [...document.querySelectorAll("details:not([open])")];
    for (const details of unfolded) details.open = true;
    // Without a wait for anything, so that it is done when the page is laid out on paper.
    drawUnfolded();
  });
  addEventListener("afterprint", () => {
    for (const details of unfolded) details.open = false;
  });

  // A link to what is folded unfolds it. A row is linked to by a click on its name.
  const reveal = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    let folded = target?.closest("details:not([open])");
    if (!folded) return;
    for (; folded; folded = folded.closest("details:not([open])")) folded.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  document.addEventListener("click", ({target}) => {
    const row = target.closest("tbody th")?.closest("tr[id]");
    if (row && getSelection().isCollapsed) history.replaceState(null, "", `#${row.id}`);
  });

  // Only what scrolls takes the keyboard's focus.
  const scroller = new ResizeObserver((entries) => entries.forEach(({target: {parentElement: box}}) => {
    box.tabIndex = box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1 ? 0 : -1;
  }));
  for (const table of document.querySelectorAll(".scroller > table")) scroller.observe(table);

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
    button.addEventListener("keydown", (event) => {
      const head = button.closest("th");
      const beside = {ArrowLeft: head.previousElementSibling, ArrowRight: head.nextElementSibling}[event.key];
      const next = beside?.querySelector("button");
      if (!next) return;
      event.preventDefault();
      [button.tabIndex, next.tabIndex] = [-1, 0];
      next.focus();
    });
  }

  // What names a row, its ratio and its standing stay in sight: where each of them stops depends on those before it.
  const keep = (table) => {
    let left = 0;
    [...table.tHead.rows[0].cells].slice(0, 3).forEach((head, number) => {
      table.style.setProperty(`--kept-${number + 1}`, `${left}px`);
      left += head.offsetWidth;
    });
  };
  const keeper = new ResizeObserver((entries) => entries.forEach((entry) => keep(entry.target)));
  for (const table of document.querySelectorAll(".every table")) keeper.observe(table);

  // Another baseline: one cost over the other, which the page has in words. That is no verdict, and the page says so.
  const written = (cell, says, sorts, small) => {
    cell.textContent = says;
    if (small) cell.append(Object.assign(document.createElement("small"), {textContent: small}));
    if (sorts === undefined) delete cell.dataset.sort;
    else cell.dataset.sort = sorts;
  };
  // The dots of a chart against another baseline: hollow and without intervals, for nothing was judged.
  const rebasedChart = (spec, ratioOf, name) => {
    const drawn = structuredClone(spec);
    drawn.data.values = drawn.data.values.map(({label, standing, cell}) => {
      const {ratio, says} = ratioOf(cell);
      return {label, standing, note: says, value: ratio ?? null, low: null, high: null, decided: false};
    });
    drawn.layer = drawn.layer.filter((layer) => layer.name !== "noise");
    return (low, high) => {
      for (const {encoding} of drawn.layer) {
        if (!encoding.x?.title) continue;
        encoding.x.title = encoding.x.title.replace(/as a multiple of .*/, () => `as a multiple of ${name} (log scale)`);
        if (encoding.x.scale) encoding.x.scale.domain = [low, high];
        if (encoding.x.axis) delete encoding.x.axis.values;
      }
      return drawn;
    };
  };
  const redraw = (places, ratioOf, name) => {
    const ratios = places.flatMap(({id}) => page.charts[id].data.values.map(({cell}) => ratioOf?.(cell).ratio));
    const known = ratios.filter((ratio) => ratio > 0);
    const [low, high] = [Math.min(0.95, ...known), Math.max(1.05, ...known)];
    const air = Math.max(1.06, (high / low) ** 0.04);
    for (const place of places) {
      if (ratioOf) changed.set(place.id, rebasedChart(page.charts[place.id], ratioOf, name)(low / air, high * air));
      else changed.delete(place.id);
      if (begun.has(place.id)) draw(place, true).catch((error) => console.error(error.message));
    }
  };

  const choosable = (study) => {
    const every = study.querySelector(".every");
    const [against, allSamples, verdict] = ["against", "all", "verdict"].map((name) => Number(every.dataset[name]));
    const table = every.querySelector("table");
    const title = table.tHead.rows[0].cells[against].querySelector("button");
    const own = title.textContent;
    const baselines = [...study.querySelectorAll("select.baseline")];
    const provider = every.querySelector("select.provider");
    const plots = [...study.querySelectorAll(".tolls .plot")];
    const rows = [...table.tBodies[0].rows].map((row) => ({
      row,
      is: row.cells[0].dataset,
      cells: [against, allSamples, verdict].map((number) => row.cells[number]),
      judged: [against, allSamples, verdict].map((number) => row.cells[number].cloneNode(true)),
    }));
    const restore = ({cells, judged}) => cells.forEach((cell, number) => {
      cell.replaceChildren(...judged[number].cloneNode(true).childNodes);
      if (judged[number].dataset.sort === undefined) delete cell.dataset.sort;
      else cell.dataset.sort = judged[number].dataset.sort;
    });
    const rebase = ({is, cells}, way, {ratio, says}) => {
      written(cells[0], says, ratio, ratio === undefined ? "" : "of the costs");
      written(cells[1], "–");
      written(cells[2], is.way === way && ratio ? "compared with" : "not judged");
    };
    const show = (way) => {
      const bases = new Map(rows.filter(({is}) => is.way === way && is.cost).map(({is}) => [is.place, Number(is.cost)]));
      const ratioOf = ({is}) => {
        const says = is.ratios?.split("|")[way];
        return says ? {ratio: is.cost / bases.get(is.place), says} : {says: "–"};
      };
      for (const one of rows) {
        one.row.hidden = Boolean(provider?.value) && one.is.provider !== provider.value;
        if (way) rebase(one, way, ratioOf(one));
        else restore(one);
      }
      const name = way ? baselines[0].selectedOptions[0].textContent : "";
      title.textContent = way ? `against ${name}` : own;
      const shown = rows.filter(({row}) => !row.hidden).length;
      const said = way ? `Ratios are one cost over that of ${name} in the same place, worked out in this page. Intervals and`
        + " verdicts were judged against the study's own baseline only, and stand there: every mark is hollow." : "";
      for (const status of study.querySelectorAll("[role=status]")) status.textContent = said;
      if (shown < rows.length) {
        every.querySelector("[role=status]").prepend(`${shown} of ${rows.length} cells are shown. `);
      }
      keep(table);
      return way && {ratioOf: (cell) => ratioOf(rows[cell]), name};
    };
    for (const select of baselines) {
      select.addEventListener("change", () => {
        for (const other of baselines) other.value = select.value;
        const chosen = show(select.value);
        redraw(plots, chosen?.ratioOf, chosen?.name);
      });
    }
    provider?.addEventListener("change", () => show(baselines[0]?.value ?? ""));
    for (const controls of study.querySelectorAll(".controls")) controls.hidden = !controls.querySelector("select");
  };
  document.querySelectorAll("main > section[id^=study-]").forEach(choosable);

  reveal();
  drawVisible().then(
    () => { root.dataset.ready = "true"; },
    (error) => { root.dataset.ready = `failed: ${error.message}`; },
  );
})();
