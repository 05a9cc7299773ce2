// Logging in.
import { h } from './dom.js';
import { logIn } from './api.js';
import { t } from './i18n.js';
import { errorWords } from './ui.js';

export function loginPage(message = '') {
  const error = h('p', { class: 'error', role: 'alert' }, message);
  const field = h('input', { type: 'password', name: 'token', required: true, autocomplete: 'current-password', spellcheck: 'false', id: 'token' });
  const go = h('button', { class: 'primary' }, t('Log in'));
  const form = h('form', { onsubmit: async (event) => {
    event.preventDefault();
    go.disabled = true;
    error.textContent = '';
    try { await logIn({ token: field.value.trim() }); } catch (failure) { error.textContent = errorWords(failure); } finally { go.disabled = false; }
  } }, h('label', { for: 'token' }, t('API token')), field, error, go);
  const element = h('main', { class: 'login panel' }, h('h1', null, 'Earshot'), form,
    h('p', { class: 'dim' }, t('The first token is in the file admin-token of the data directory. The command earshot console prints an address that needs none.')));
  queueMicrotask(() => field.focus());
  return { element };
}
