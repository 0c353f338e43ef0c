"use strict";
// All tolls by machine: of the rows and columns that the filters leave, as many rows at once as a browser lays out in a
// moment. Words and numbers are the page's own.
for (const matrix of document.querySelectorAll(".matrix")) {
  const said = JSON.parse(matrix.querySelector("script").textContent);
  const [family, processor, flag, differing] = ["family", "processor", "flag", "differing"].map((name) => matrix.querySelector(`.${name}`));
  const [name, earlier, later] = ["name", "earlier", "later"].map((one) => matrix.querySelector(`.${one}`));
  const table = matrix.querySelector("table");
  const status = matrix.querySelector("[role=status]");
  const symbols = matrix.querySelector("template").content;
  // A thousand rows of five machines are all shown; of two hundred machines a few screens of rows at a time.
  const MOST_CELLS = 5000;
  let first = 0;

  const element = (tag, text, more = {}) => Object.assign(document.createElement(tag), {textContent: text}, more);
  const headed = (head, small) => {
    if (small) head.append(element("small", small));
    return head;
  };
  const rowHead = ([, cell, over, standing, words]) => {
    const head = headed(element("th", cell, {scope: "row"}), over);
    const standingText = element("small", words, {className: "standing-text"});
    standingText.prepend(symbols.querySelector(`.${standing}`).cloneNode(true));
    head.append(standingText);
    return head;
  };
  const cellOf = (written) => {
    if (!written) return element("td", "");
    const [mark, verdict] = said.verdicts[written[0]];
    const [ratio, ends, runs] = written.slice(1).split(";");
    if (ends === undefined) return headed(element("td", `${mark} ${verdict}`), said.reasons[Number(ratio)]);
    const cell = element("td", `× ${ratio}`, {className: "number"});
    const judged = element("small", `${mark} ${verdict}${runs ? `, ${runs}` : ""}`);
    judged.dataset.verdict = verdict;
    cell.append(element("small", `[${ends}]`), judged);
    return cell;
  };

  const kept = ([, , of, flags]) => (!processor.value || Number(processor.value) === of)
    && (!flag.value || flags.includes(Number(flag.value.slice(1))) === flag.value.startsWith("+"));
  const meets = ([of, cell, over, , , differs]) => (!family.value || Number(family.value) === of)
    && (!differing.checked || differs)
    && `${cell} ${over}`.toLowerCase().includes(name.value.trim().toLowerCase());

  const show = () => {
    const columns = said.columns.flatMap((column, number) => kept(column) ? [number] : []);
    const rows = said.rows.filter((row) => meets(row) && (columns.length === said.columns.length
      || row[6].split("|").some((cell, number) => cell && columns.includes(number))));
    const most = Math.max(20, Math.floor(MOST_CELLS / Math.max(1, columns.length)));
    first = Math.max(0, Math.min(first, Math.floor((rows.length - 1) / most) * most));
    const heads = document.createElement("tr");
    heads.append(element("th", "toll", {scope: "col"}),
      ...columns.map((number) => headed(element("th", said.columns[number][0], {scope: "col"}), said.columns[number][1])));
    table.tHead.replaceChildren(heads);
    table.tBodies[0].replaceChildren(...rows.slice(first, first + most).map((row) => {
      const line = document.createElement("tr");
      const cells = row[6].split("|");
      line.append(rowHead(row), ...columns.map((number) => cellOf(cells[number])));
      return line;
    }));
    const last = Math.min(first + most, rows.length);
    status.textContent = `${rows.length ? `Tolls ${(first + 1).toLocaleString("en")} to ${last.toLocaleString("en")}` : "None"} of`
      + ` ${said.rows.length.toLocaleString("en")}${rows.length < said.rows.length ? ` (${rows.length.toLocaleString("en")} as filtered)` : ""},`
      + ` ${columns.length} of ${said.columns.length} machines.`;
    earlier.disabled = first === 0;
    later.disabled = last >= rows.length;
    earlier.dataset.by = -most;
    later.dataset.by = most;
  };

  for (const control of [family, processor, flag, differing, name]) {
    control.addEventListener(control === name ? "input" : "change", () => {
      first = 0;
      show();
    });
  }
  for (const button of [earlier, later]) {
    button.addEventListener("click", () => {
      first += Number(button.dataset.by);
      show();
      table.parentElement.scrollTop = 0;
      // A button that has nothing more to show would take the focus with it.
      if (button.disabled) (button === earlier ? later : earlier).focus();
    });
  }
  matrix.querySelector(".controls").hidden = false;
  show();
}
