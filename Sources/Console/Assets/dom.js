// Makes elements. Text only ever becomes text nodes, so nothing that a device or an app has set can become markup.

// Control characters and marks that reorder text, as the server's own texts escape them; line ends and tabs may stay.
const unsafe = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff]/g;
const shown = (text) => String(text).replace(unsafe, (sign) => `\\u{${sign.charCodeAt(0).toString(16)}}`);

/** h('button', {class: 'x', onclick: f}, 'text', child, [more]) → element. Null and false children are left out. */
export function h(tag, attributes, ...children) {
  const svg = svgTags.has(tag);
  const element = svg ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name in properties && !svg) element[name] = value;
    else element.setAttribute(name, value === true ? '' : name === 'title' ? shown(value) : value);
  }
  append(element, children);
  return element;
}

const properties = { value: 1, checked: 1, disabled: 1, selected: 1, muted: 1 };
const svgTags = new Set(['svg', 'path', 'line', 'g', 'circle', 'rect', 'polyline', 'text', 'use']);

function append(element, children) {
  for (const child of children) {
    if (Array.isArray(child)) append(element, child);
    else if (child !== null && child !== undefined && child !== false) element.append(child instanceof Node ? child : shown(child));
  }
}

/** Elements that are often made. */
export const panel = (...children) => h('section', { class: 'panel' }, ...children);
export const dim = (...children) => h('p', { class: 'dim' }, ...children);
export const aside = (...children) => h('span', { class: 'dim' }, ...children);
export const stack = (...children) => h('div', { class: 'stack' }, ...children);
export const head = (title, ...more) => h('div', { class: 'head' }, h('h1', null, title), ...more);
export const options = (pairs, chosen) => pairs.map(([value, label]) => h('option', { value, selected: value === chosen }, label));

/** Replaces what an element shows. */
export function show(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/** Sets text only when it differs, so that screen readers do not repeat it. */
export function setText(element, text) {
  text = shown(text);
  if (element.textContent !== text) element.textContent = text;
}

/** A list of keyed rows that reuses the elements of rows that stay: focus, pictures and players survive an update. */
export class KeyedList {
  constructor(parent, key, make) {
    this.parent = parent;
    this.key = key;
    this.make = make;
    this.rows = new Map();
  }

  update(items) {
    const rows = new Map();
    let at = this.parent.firstChild;
    for (const item of items) {
      const key = this.key(item);
      if (rows.has(key)) continue;
      const row = this.rows.get(key) ?? this.make(item);
      row.update(item);
      rows.set(key, row);
      if (row.element === at) at = at.nextSibling;
      else this.parent.insertBefore(row.element, at);
    }
    for (const [key, row] of this.rows) {
      if (rows.has(key)) continue;
      row.stop?.();
      row.element.remove();
    }
    this.rows = rows;
  }

  stop() { for (const row of this.rows.values()) row.stop?.(); }
}
