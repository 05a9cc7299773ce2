// Shared by the demo pages: the language, the status line, and small helpers for the document. No page of its own.

export const $ = (id) => document.getElementById(id);

/** 1 for Chinese, otherwise 0: the index in each pair of a table of texts. */
export const language = (navigator.language || 'en').toLowerCase().startsWith('zh') ? 1 : 0;

/**
 * Puts a page's texts into it, and returns the function that looks up others.
 * `table`: {key: [English, Chinese]}, where {name} stands for a value given with the key. In the page, `data-word` names the text
 * of an element, `data-label` its aria-label, `data-hint` its placeholder. The key `title` is the page's title.
 */
export function speak(table) {
  const word = (key, values = {}) => (table[key]?.[language] ?? key).replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
  document.documentElement.lang = language ? 'zh' : 'en';
  if (table.title) document.title = word('title');
  for (const each of document.querySelectorAll('[data-word]')) each.textContent = word(each.dataset.word);
  for (const each of document.querySelectorAll('[data-label]')) each.setAttribute('aria-label', word(each.dataset.label));
  for (const each of document.querySelectorAll('[data-hint]')) each.placeholder = word(each.dataset.hint);
  return word;
}

/** Shows a text in the status line, an element with the id `status`. An unchanged text is not set again, because screen readers would repeat it. */
export function say(text, isBad = false) {
  const line = $('status');
  if (line.textContent !== text) line.textContent = text;
  line.classList.toggle('bad', isBad);
}

/**
 * Makes an element. `options`: its properties; `class`, `data` and names with a dash are handled apart. Children: nodes, or texts, which stay texts.
 */
export function make(tag, options = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name === 'class') element.className = value;
    else if (name === 'data') Object.assign(element.dataset, value);
    else if (name.includes('-')) element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children);
  return element;
}

/** Adds a line to a list of chat lines. The list keeps the last 200, and scrolls along unless the reader has scrolled up. */
export function addLine(list, name, text, isNote = false) {
  const isAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
  list.append(isNote ? make('li', { class: 'note' }, text) : make('li', {}, make('b', {}, name), ` ${text}`));
  while (list.children.length > 200) list.firstChild.remove();
  if (isAtEnd) list.scrollTop = list.scrollHeight;
}

/**
 * Shows in an element how many seconds are left, until the returned function is called. `ends`: a time as of performance.now().
 * Screen readers should not follow it: give the element aria-hidden, or no role.
 */
export function countDown(element, ends, done = () => {}) {
  let timer = 0;
  const show = () => {
    const left = Math.max(0, Math.ceil((ends - performance.now()) / 1000));
    element.textContent = String(left);
    if (left > 0) return;
    clearInterval(timer);
    done();
  };
  timer = setInterval(show, 200);
  show();
  return () => clearInterval(timer);
}

/** The URL of a WebSocket on this server. */
export function socketAddress(path, query = {}) {
  const address = new URL(path, location.href);
  address.protocol = address.protocol === 'https:' ? 'wss:' : 'ws:';
  address.search = new URLSearchParams(query);
  return address.href;
}

/** The waits between attempts to reconnect: each twice as long as the one before, at most 15 seconds, and spread at random. */
export class Waits {
  constructor() { this.reset(); }
  reset() { this.next = 500; }
  take() {
    const wait = this.next * (0.75 + Math.random() / 2);
    this.next = Math.min(this.next * 2, 15000);
    return wait;
  }
}
