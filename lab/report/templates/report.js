
"use strict";
// Filters and sorts the tables of the page. Texts come from trials: they are only compared and set as text, never parsed.
(() => {
  const KEYS = { family: "Family", setup: "Setup", build: "Build", model: "Model", role: "Role", outcome: "Outcome" };
  const text = (cell) => cell.dataset.v ?? cell.textContent.replace(/\s+/g, " ").trim();
  const make = (tag, words, attributes = {}) => {
    const element = document.createElement(tag);
    element.textContent = words;
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };
  const tables = [...document.querySelectorAll("table.rows")].map((table, index) => {
    const heads = [...table.tHead.rows[0].cells];
    const rows = [...table.tBodies[0].rows];
    const keys = heads.map((head) => head.dataset.key);
    const values = rows.map((row) => {
      const found = {};
      keys.forEach((key, at) => { if (key && row.cells[at]) found[key] = text(row.cells[at]); });
      return found;
    });
    return { table, heads, rows, keys, values, index, note: null };
  });
  const state = { filters: {}, sort: null, anchor: "" };
  const selects = {};

  const read = () => {
    const [anchor, query = ""] = location.hash.slice(1).split("?");
    state.anchor = anchor;
    state.filters = {};
    state.sort = null;
    for (const [key, value] of new URLSearchParams(query)) {
      if (Object.hasOwn(KEYS, key)) state.filters[key] = value;
      if (key === "sort" && /^\d+\.\d+\.[ad]$/.test(value)) state.sort = value;
    }
  };
  const write = () => {
    const query = new URLSearchParams(state.filters);
    if (state.sort) query.set("sort", state.sort);
    const hash = `#${state.anchor}${query.size ? "?" + query : ""}`;
    if (location.hash !== hash && (location.hash || query.size)) history.replaceState(null, "", hash);
  };

  const filter = () => {
    const wanted = Object.entries(state.filters);
    let shown = 0, all = 0;
    for (const one of tables) {
      let left = 0;
      one.rows.forEach((row, at) => {
        const fits = wanted.every(([key, value]) => !one.keys.includes(key) || one.values[at][key] === value);
        row.hidden = !fits;
        left += fits;
      });
      if (one.note) one.note.textContent = wanted.length ? ` ${left} of ${one.rows.length} rows shown.` : "";
      if (one.table.id === "trials-table") { shown = left; all = one.rows.length; }
    }
    for (const [key, select] of Object.entries(selects)) select.value = state.filters[key] ?? "";
    const count = document.getElementById("count");
    if (count) count.textContent = all ? `${shown} of ${all} trials shown` : wanted.length ? "Tables filtered" : "";
    const clear = document.getElementById("clear");
    if (clear) clear.disabled = !wanted.length;
  };

  // A rate is sorted by its value, not by its numerator; one without a denominator stands last, as nothing does.
  const number = (value) => {
    const share = /^(\d+)\/(\d+)/.exec(value);
    return share ? share[1] / share[2] : /^\d+( |$)/.test(value) ? parseInt(value, 10) : NaN;
  };
  const blank = (value) => !value || value === "–" || /^0\/0/.test(value);
  const sort = () => {
    const [index, column, way] = state.sort ? state.sort.split(".") : [];
    for (const one of tables) {
      for (const head of one.heads) head.removeAttribute("aria-sort");
      let order = one.rows;
      const at = Number(column);
      if (String(one.index) === index && one.heads[at]?.querySelector("button")) {
        const named = one.rows.map((row) => [row, row.cells[at] ? text(row.cells[at]) : ""]);
        const sign = way === "d" ? -1 : 1;
        order = named.sort(([, a], [, b]) => {
          if (blank(a) || blank(b)) return Number(blank(a)) - Number(blank(b));
          const x = number(a), y = number(b);
          return sign * (isNaN(x) || isNaN(y) ? a.localeCompare(b, "en", { numeric: true }) : x - y);
        }).map(([row]) => row);
        one.heads[at].setAttribute("aria-sort", way === "d" ? "descending" : "ascending");
      }
      one.table.tBodies[0].append(...order);
    }
  };

  const build = () => {
    for (const one of tables) {
      one.note = make("span", "", { class: "count" });
      one.table.caption?.append(one.note);
      one.heads.forEach((head, at) => {
        if (head.classList.contains("plot") || !head.textContent.trim()) return;
        const button = make("button", "", { type: "button", class: "sorter" });
        button.append(...head.childNodes);
        head.append(button);
        button.addEventListener("click", () => {
          const up = `${one.index}.${at}.a`, down = `${one.index}.${at}.d`;
          state.sort = state.sort === up ? down : state.sort === down ? null : up;
          sort();
          write();
        });
      });
    }
    const bar = make("div", "", { class: "filters", role: "search", "aria-label": "Filter the tables" });
    for (const [key, label] of Object.entries(KEYS)) {
      const found = new Set();
      for (const one of tables) one.values.forEach((row) => { if (row[key]) found.add(row[key]); });
      if (found.size < 2) continue;
      const select = make("select", "", { id: `filter-${key}` });
      select.append(make("option", "all", { value: "" }));
      [...found].sort((a, b) => a.localeCompare(b, "en", { numeric: true }))
        .forEach((value) => select.append(make("option", value.length > 60 ? `${value.slice(0, 60)}…` : value, { value })));
      select.addEventListener("change", () => {
        if (select.value) state.filters[key] = select.value; else delete state.filters[key];
        filter();
        write();
      });
      selects[key] = select;
      const field = make("label", label, { for: select.id });
      field.append(select);
      bar.append(field);
    }
    if (!Object.keys(selects).length) return;
    const clear = make("button", "Clear", { type: "button", id: "clear" });
    clear.addEventListener("click", () => { state.filters = {}; filter(); write(); });
    bar.append(clear, make("p", "", { id: "count", role: "status", "aria-live": "polite" }));
    document.getElementById("filters")?.append(bar);
  };

  const show = () => {
    if (!state.anchor) return;
    const target = document.getElementById(state.anchor);
    for (let fold = target?.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    target?.scrollIntoView();
  };
  const follow = () => { read(); filter(); sort(); show(); };

  build();
  follow();
  addEventListener("hashchange", follow);
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-filter]");
    if (!link) return;
    event.preventDefault();
    location.hash = `${link.hash}?${link.dataset.filter}`;
  });
})();
