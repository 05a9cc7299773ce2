// Shared by several pages: notices, dialogs, badges, facts.
import { isAway } from './api.js';
import { aside, h, options } from './dom.js';
import { results } from './codes.js';
import { isChinese, t } from './i18n.js';

let timer;

/** Shows the user a message for a few seconds. */
export function notice(text, isBad = false) {
  const place = document.getElementById('notice');
  clearTimeout(timer);
  place.className = isBad ? 'bad' : '';
  place.textContent = text;
  timer = setTimeout(() => { place.textContent = ''; }, isBad ? 10000 : 4000);
}

// While the banner says that the server is away, a notice adds nothing.
export const fail = (error) => { if (error.status || !isAway()) notice(error.status ? errorWords(error) : t('The server cannot be reached. Trying again…'), true); };

/** The text of an error. The API's text is English; in other languages the error's class stands before it. */
export function errorWords(error) {
  if (!error.status) return t('The server cannot be reached.');
  const words = t(error.message);
  const kind = results[error.details?.type];
  return isChinese() && words === error.message && kind ? `${t(kind)}（${error.message}）` : words;
}

/** The button whose action is under way, and how many dialogs were opened. */
let opener = null;
let dialogs = 0;

/** Gives the focus back to what opened a dialog, or to what took its place when the page was drawn again. */
function giveBack(element) {
  const holder = document.activeElement;
  if (!element || document.querySelector('dialog[open]') || (holder && holder !== document.body && holder.isConnected)) return;
  const place = document.getElementById('main');
  const isLike = (each) => each.textContent === element.textContent && each.className === element.className && each.dataset.key === element.dataset.key && each.offsetParent;
  (element.isConnected ? element : [...place?.querySelectorAll('button') ?? []].find(isLike) ?? place)?.focus();
}

/** Draws a place anew without taking the focus from a button there that has a `data-key`. Not while a button is held down: its press would be lost. */
export function redraw(place, draw) {
  if (place.querySelector('button:active')) return;
  const key = place.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  draw();
  if (key) [...place.querySelectorAll('[data-key]')].find((each) => each.dataset.key === key)?.focus({ preventScroll: true });
}

/** Shows a dialog, which Escape closes, until it is closed. */
function open(dialog, done = () => {}) {
  const from = opener ?? document.activeElement;
  dialogs += 1;
  dialog.addEventListener('close', () => { dialog.remove(); done(); giveBack(from); });
  document.body.append(dialog);
  dialog.showModal();
}

/** A button that carries out `act` once at a time and reports the outcome. */
export function button(text, act, attributes = {}) {
  const element = h('button', { type: 'button', ...attributes, onclick: async () => {
    // A button that is disabled loses the focus.
    const hadFocus = document.activeElement === element;
    const former = dialogs;
    element.disabled = true;
    opener = element;
    try { await act(); } catch (error) { fail(error); } finally {
      element.disabled = false;
      if (opener === element) opener = null;
      if (hadFocus || dialogs > former) giveBack(element);
    }
  } }, text);
  return element;
}

/**
 * Asks before an action. `fields`: [{name, label, help, type, value, options, groups, isList, required, length}].
 * `groups`, [[name, [[value, label], …]], …], are check boxes. Their value is an array, and so is that of a list, whose items are separated by commas
 * or spaces.
 * `act(values)` runs while the dialog is open; its error is shown there. Returns whether it was done.
 */
export function ask(title, text, fields, act, { verb = t('Confirm'), isDanger = false } = {}) {
  return new Promise((done) => {
    const error = h('p', { class: 'error', role: 'alert' });
    const inputs = fields.map((field) => field.groups ? checkBoxes(field) : field.options
      ? h('select', { name: field.name }, options(field.options, field.value))
      : h('input', { name: field.name, type: field.type ?? 'text', value: field.value ?? '', required: field.required, maxlength: field.length, autocomplete: 'off' }));
    const go = h('button', { class: isDanger ? 'danger' : 'primary' }, verb);
    const cancel = h('button', { type: 'button', onclick: () => dialog.close() }, t('Cancel'));
    const form = h('form', { onsubmit: async (event) => {
      event.preventDefault();
      go.disabled = true;
      error.textContent = '';
      try {
        await act(Object.fromEntries(fields.map((field, index) => [field.name, valueOf(field, inputs[index])])));
        isDone = true;
        dialog.close();
      } catch (failure) {
        error.textContent = errorWords(failure);
      } finally {
        go.disabled = false;
      }
    } },
    h('h2', { id: 'dialog-title' }, title), text && h('p', { class: 'dim' }, text),
    // Check boxes have their own labels.
    fields.map((field, index) => h(field.groups ? 'fieldset' : 'label', null, field.groups ? h('legend', null, field.label) : field.label, inputs[index], field.help && aside(field.help))), error,
    h('menu', null, cancel, go));
    let isDone = false;
    const dialog = h('dialog', { 'aria-labelledby': 'dialog-title' }, form);
    open(dialog, () => done(isDone));
    // A stray Enter must not trigger an irreversible action.
    (inputs[0] ?? (isDanger ? cancel : go)).focus();
  });
}

export const small = (text, act, key) => button(text, act, { class: 'small', 'data-key': key });

/** A button for what cannot be undone: asks, carries `act` out, says that it is `done`, and updates the page. */
export function dangerous(verb, title, text, act, done, update) {
  return button(verb, async () => {
    if (await ask(title, text, [], act, { verb, isDanger: true })) { notice(done); await update(); }
  }, { class: 'small danger' });
}

export const roomLink = (id) => h('a', { href: `#/rooms/${encodeURIComponent(id)}` }, id);

function valueOf(field, input) {
  if (field.groups) return [...input.querySelectorAll('[name]:checked')].map((each) => each.value);
  return field.isList ? input.value.split(/[\s,]+/).filter(Boolean) : input.value;
}

/** Check boxes in groups that open; a group without a choice is closed. */
function checkBoxes({ name, groups, value = [] }) {
  return h('div', { class: 'choices' }, groups.map(([group, options]) => {
    const boxes = options.map(([each]) => h('input', { type: 'checkbox', name, value: each, checked: value.includes(each) }));
    const summary = h('summary');
    const all = h('input', { type: 'checkbox', 'aria-label': `${t('All')}: ${group}`, onchange: () => { boxes.forEach((box) => { box.checked = all.checked; }); tell(); } });
    const tell = () => {
      const chosen = boxes.filter((box) => box.checked).length;
      all.checked = chosen === boxes.length;
      summary.textContent = chosen ? `${group} (${chosen})` : group;
    };
    tell();
    return h('details', { open: boxes.some((box) => box.checked), onchange: tell }, summary, h('label', null, all, t('All')), options.map(([, label], index) => h('label', null, boxes[index], label)));
  }));
}

/** Shows something in a dialog until it is closed. */
export function inform(title, ...children) {
  const dialog = h('dialog', { 'aria-label': title },
    h('h2', null, title), children, h('menu', null, h('button', { onclick: () => dialog.close() }, t('Close'))));
  open(dialog);
}

const opened = new Set();
/** A longer text in two lines, whole when it is pressed; `key` remembers that. */
export function clamped(text, key = text) {
  const toggle = () => {
    if (!opened.delete(key)) opened.add(key);
    draw();
  };
  const element = h('div', { class: 'clamp', title: text, role: 'button', tabindex: '0', onclick: toggle, onkeydown: (event) => {
    if (event.key !== 'Enter' && event.key !== ' ') return;
    event.preventDefault();
    toggle();
  } }, text);
  const draw = () => {
    element.classList.toggle('whole-text', opened.has(key));
    element.setAttribute('aria-expanded', String(opened.has(key)));
  };
  draw();
  return element;
}

export const stateBadge = (state) => h('span', { class: `badge ${state === 'live' ? 'live' : ''}` }, t(state));
export const verdictBadge = (verdict) => (verdict ? h('span', { class: `badge ${verdict}` }, t(verdict)) : null);

export const facts = (pairs) => h('dl', { class: 'facts' }, pairs.filter(([, value]) => value !== null && value !== undefined && value !== '')
  .map(([name, value]) => [h('dt', null, name), h('dd', null, value)]));

/** A column of numbers. */
export const number = (name) => ({ name, isNumber: true });

/** A row may have a `note`, which is shown below it over the whole width. */
export function table(caption, columns, rows) {
  return h('div', { class: 'scroll' }, h('table', null, caption && h('caption', null, caption),
    h('thead', null, h('tr', null, columns.map((column) => h('th', { scope: 'col', class: column.isNumber && 'number' }, column.name ?? column)))),
    h('tbody', null, rows.map((row) => [h('tr', { class: row.note && 'noted' }, row.map((cell, index) => h('td', { class: columns[index]?.isNumber && 'number', 'data-label': columns[index]?.name ?? columns[index] }, cell))),
      row.note && h('tr', { class: 'note' }, h('td', { colspan: columns.length }, row.note))]))));
}

export async function copy(text) {
  // The clipboard API needs HTTPS or localhost.
  if (navigator.clipboard) await navigator.clipboard.writeText(text);
  else {
    const field = h('textarea', { value: text });
    document.body.append(field);
    field.select();
    document.execCommand('copy');
    field.remove();
  }
  notice(t('Copied.'));
}

export const secretLine = (text) => h('div', { class: 'secret' }, h('code', null, text), small(t('Copy'), () => copy(text)));

/** Runs `work` now and every `ms` while the page is visible; a failure is reported once, and so is its end, unless it `isQuiet`. Returns a function that
 * stops it. */
export function every(ms, work, isQuiet = false) {
  let isRunning = true;
  let isFailing = false;
  let isBusy = false;
  let timer;
  const turn = async () => {
    if (isBusy) return;
    isBusy = true;
    clearTimeout(timer);
    if (!document.hidden) {
      try {
        await work();
        if (isFailing && isRunning && !isQuiet) notice(t('Connected again.'));
        isFailing = false;
      } catch (error) {
        if (!isRunning || error.status === 401) { isRunning = false; return; }
        if (!isFailing && !isQuiet) fail(error);
        isFailing = true;
      }
    }
    isBusy = false;
    if (isRunning) timer = setTimeout(turn, isFailing ? 2000 : ms);
  };
  const awake = () => { if (!document.hidden && isRunning) turn(); };
  document.addEventListener('visibilitychange', awake);
  turn();
  return () => { isRunning = false; clearTimeout(timer); document.removeEventListener('visibilitychange', awake); };
}

/** Returns a function that runs `work` within a tenth of a second, once for all calls until then. Its `stop` cancels a pending run. */
export function soon(work) {
  let due;
  const call = () => { due ??= setTimeout(() => { due = undefined; work(); }, 100); };
  call.stop = () => { clearTimeout(due); due = undefined; };
  return call;
}
