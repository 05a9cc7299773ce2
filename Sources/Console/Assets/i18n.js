// Translations. English texts are the keys, so that a page is readable where a translation is missing.
import { chinese } from './chinese.js';

const stored = localStorage.getItem('language');
let current = stored === 'zh' || stored === 'en' ? stored : navigator.language.toLowerCase().startsWith('zh') ? 'zh' : 'en';
document.documentElement.lang = current === 'zh' ? 'zh-Hans' : 'en';

export const language = () => (current === 'zh' ? 'zh-CN' : 'en-GB');
export const isChinese = () => current === 'zh';

export function setLanguage(name) {
  localStorage.setItem('language', name);
  location.reload();
}

/** t('{n} viewers', {n: 3}). In English a text of the form '{n} …s' loses its last letter for one. */
export function t(text, values) {
  const found = current === 'zh' ? chinese[text] ?? text : String(values?.n) === '1' ? text.replace(/^(\{n\} .+)s$/, '$1') : text;
  return values ? found.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole) : found;
}
