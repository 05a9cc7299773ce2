// Pushes and plays that were refused lately: a refused device appears nowhere else.
import { get, may } from './api.js';
import { reasonWords } from './codes.js';
import { h, panel, show } from './dom.js';
import { clock, count } from './format.js';
import { t } from './i18n.js';
import { rights } from './rights.js';
import { number, table } from './ui.js';

/** Refusals of the stream that `slotNow` names; without it, of all. */
export function refusals(slotNow) {
  const element = panel();
  element.hidden = true;
  let drawn;
  async function update() {
    const slot = slotNow?.();
    if (!may(rights.listRefusals) || (slotNow && !slot)) { element.hidden = true; return; }
    const { list } = await get('/streams/refused', slot ? { app: slot.app, name: slot.name } : {});
    element.hidden = !list.length;
    const key = JSON.stringify(list);
    if (key === drawn) return;
    drawn = key;
    const columns = [t('Time'), ...(slotNow ? [] : [t('Stream')]), t('What'), t('Reason'), t('Address'), number(t('How often'))];
    show(element, h('h2', null, t('Refused lately')), table('', columns, list.slice(0, 50).map((each) => [
      clock(each.lastAt), ...(slotNow ? [] : [h('code', null, `${each.app}/${each.name}`)]), each.action === 'publish' ? t('Push') : t('Play'),
      h('span', null, reasonWords(each.reason), h('div', { class: 'dim' }, each.message)), each.clientAddress, count(each.count),
    ])));
  }
  return { element, update };
}
