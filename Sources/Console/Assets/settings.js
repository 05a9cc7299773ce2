// The server's settings, with the source of each: read only, since they belong to the file, the environment and the command line.
import { get, may, whyNot } from './api.js';
import { aside, dim, h, head, panel, setText, show } from './dom.js';
import { none } from './format.js';
import { t } from './i18n.js';
import { rights } from './rights.js';
import { every, soon, table } from './ui.js';

const sources = { default: 'default', file: 'file', environment: 'environment', flag: 'command line' };

/** The value as the file would have it. */
function valueOf({ value, isSet, isHidden }) {
  if (isHidden) return isSet ? t('set, not shown') : none;
  return value === null ? none : h('code', null, value);
}

const sourceOf = ({ source, place }) => [t(sources[source] ?? source), place && [' ', h('code', { class: 'dim' }, place)]];

export function settingsPage() {
  const list = h('div', { class: 'stack' });
  const number = h('span', { class: 'dim', role: 'status' });
  const search = h('input', { type: 'search', id: 'sought', maxlength: 60, autocomplete: 'off' });
  const isOwn = h('input', { type: 'checkbox', id: 'own' });
  const element = h('div', null, head(t('Settings'), number), dim(t('The values in force. They are changed in the file, the environment or the command line; a reload or a restart takes them over.')),
    h('div', { class: 'filters', role: 'search' }, h('label', { class: 'grow' }, t('Search'), search), h('label', { class: 'box' }, isOwn, t('Only those that are not the default'))), list);
  if (!may(rights.listSettings)) {
    show(element, head(t('Settings')), h('p', null, whyNot(rights.listSettings)));
    return { element, title: t('Settings') };
  }
  let all = [];
  let drawn = '';

  function draw() {
    const words = search.value.trim().toLowerCase();
    const found = all.filter((each) => (!isOwn.checked || each.source !== 'default') && (!words || `${each.setting} ${each.help} ${each.environment}`.toLowerCase().includes(words)));
    setText(number, t('{n} settings', { n: found.length }));
    const groups = grouped(found);
    show(list, found.length ? [...groups].map(([name, settings]) => panel(h('h2', null, name), table('', [t('Setting'), t('Value'), t('Source'), t('Meaning')], settings.map((each) => [
      h('code', null, each.setting), valueOf(each), sourceOf(each), [each.help, ' ', aside(each.environment), each.needsRestart && [' ', aside(`· ${t('needs a restart')}`)]]]))))
      : dim(t('No setting fits.')));
  }

  const later = soon(draw);
  search.addEventListener('input', later);
  isOwn.addEventListener('change', draw);
  const stop = every(30000, async () => {
    const data = await get('/server/settings');
    const key = JSON.stringify(data.list);
    if (key === drawn) return;
    drawn = key;
    all = data.list;
    draw();
  });
  return { element, title: t('Settings'), stop() { stop(); later.stop(); } };
}

const section = ({ setting }) => setting.split('.')[0];

/** Settings by the first part of their names, in their order. */
function grouped(settings) {
  const groups = new Map();
  for (const each of settings) groups.set(section(each), [...groups.get(section(each)) ?? [], each]);
  return groups;
}
