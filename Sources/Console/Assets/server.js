// The server's condition: connections, loops, memory, limits, and why connections ended.
import { get, may, post, session, whyNot } from './api.js';
import { chart } from './chart.js';
import { coded, limits, reasonWords } from './codes.js';
import { aside, dim, h, head, panel, show } from './dom.js';
import { bits, bytes, count, duration, ms, none } from './format.js';
import { t } from './i18n.js';
import { rate, readings, readMetrics } from './metrics.js';
import { refusals } from './refusals.js';
import { rights } from './rights.js';
import { dangerous, every, number, table } from './ui.js';

const times8 = (value) => (value === null ? null : value * 8);
const disks = { data: 'Disk of the data', recordings: 'Disk of the recordings' };

export function serverPage() {
  const warnings = h('ul', { class: 'warnings panel error', hidden: true });
  const figures = h('div', { class: 'figures' });
  const sections = h('div', { class: 'sections' });
  const element = h('div', null, head(t('Server'), aside(`${t('Version')} ${session?.version ?? ''}`)), warnings, figures, sections);
  if (!may(rights.getCounters)) {
    show(sections, h('p', null, whyNot(rights.getCounters)));
    return { element, title: t('Server') };
  }
  const refused = refusals();
  const places = { nodes: h('section', { class: 'panel', hidden: true }), protocols: panel(), limits: panel(), loops: panel(), check: panel() };
  const ends = h('section', { class: 'panel wide' });
  refused.element.classList.add('wide');
  const percent = (share) => (share === null || share === undefined ? none : `${Math.round(share * 100)} %`);
  const drawn = [
    [chart(t('Received'), bits), (_, index) => times8(rate(index, 'received'))], [chart(t('Sent'), bits), (_, index) => times8(rate(index, 'sent'))],
    [chart(t('CPU'), percent), (_, index) => rate(index, 'cpu')], [chart(t('Memory'), bytes), ({ memory }) => memory],
    [chart(t('Viewers'), count), ({ viewers }) => viewers], [chart(t('Busiest core answers late by'), ms), ({ lag }) => lag],
  ];
  const charts = h('section', { class: 'panel wide' }, h('h2', null, t('Charts'), ' ', aside(t('since the console was opened'))), h('div', { class: 'charts' }, drawn.map(([each]) => each.element)));
  show(sections, [charts, ends, refused.element, ...Object.values(places)]);

  function warn({ needRestart }) {
    warnings.hidden = !needRestart.length;
    show(warnings, h('li', null, t('These settings wait for a restart: {names}', { names: needRestart.map((each) => each.setting).join(', ') })));
  }

  /** Shows counts above zero, the largest first. `words` makes a name readable. */
  function list(place, title, column, counts, words, otherwise) {
    const found = counts.filter(([, value]) => value > 0).sort((one, other) => other[1] - one[1]);
    show(place, h('h2', null, title), found.length || !otherwise ? table('', [column, number(t('Connections'))], found.map(([name, value]) => [words(name), count(value)])) : dim(otherwise));
  }

  async function load() {
    const [counters, metrics, state] = await Promise.all([get('/counters'), readMetrics(), get('/server')]);
    warn(state);
    const newest = readings.length - 1;
    const figure = (name, value, more) => h('div', { class: 'figure' }, aside(name), h('b', null, value), more && aside(more));
    show(figures,
      figure(t('Live streams'), count(metrics.earshot_streams_live)), figure(t('Viewers'), count(metrics.earshot_viewers)), figure(t('Connections'), count(metrics.earshot_connections)),
      figure(t('Busiest core answers late by'), ms(metrics.earshot_loop_lag_seconds * 1000)),
      figure(t('Received'), bits(times8(rate(newest, 'received'))), bytes(metrics.received)), figure(t('Sent'), bits(times8(rate(newest, 'sent'))), bytes(metrics.sent)),
      figure(t('CPU'), percent(rate(newest, 'cpu')), t('of one core')),
      figure(t('Memory'), bytes(metrics.process_resident_memory_bytes)), figure(t('Runs for'), duration(metrics.process_uptime_seconds)),
      figure(t('Memory for media'), bytes(counters.memoryUsedBytes), t('used of {limit}', { limit: '' }) + bytes(counters.memoryLimitBytes)),
      [...metrics.disks].map(([of, free]) => figure(t(disks[of] ?? of), bytes(free), of === 'data' ? t('free; {least} must stay', { least: bytes(metrics.earshot_store_min_free_bytes) }) : t('free'))),
      figure(t('Pushes begun'), count(counters.publishesStarted)), figure(t('Plays begun'), count(counters.playsStarted)));
    for (const [each, value] of drawn) each.update(readings.map((reading, index) => ({ at: reading.at, value: value(reading, index) })));
    list(ends, t('Why connections ended'), t('Reason'), Object.entries(counters.closed), (reason) => coded(reasonWords(reason), reason), t('Nothing has ended yet.'));
    const others = Object.keys(limits).filter((name) => !metrics.limits.has(name)).map((name) => [name, counters[name] ?? metrics[name]]);
    list(places.limits, t('Limits hit'), t('Reason'), [...metrics.limits, ...others], (name) => coded(t(limits[name] ?? name), name), t('No limit was hit.'));
    show(places.loops, h('h2', null, t('Event loops')), dim(t('Each serves its share of the connections. One that is late for long takes no new viewers until it is not: the setting limits.lag.')),
      table('', [t('Loop'), number(t('Answers late by'))], metrics.lags.map((lag, index) => [index + 1, lag]).sort(([, one], [, other]) => other - one).map(([loop, lag]) => [loop, ms(lag)])));
    list(places.protocols, t('By protocol'), t('Protocol'), [...metrics.protocols], (name) => name);
  }

  async function nodes() {
    const { isShared, list: all } = await get('/nodes');
    places.nodes.hidden = !isShared;
    show(places.nodes, h('h2', null, t('Nodes')), table('', [t('Name'), t('State'), number(t('Pushes')), number(t('Lease')), t('Version'), ''], all.map(({ name, state, isSelf, isKeeper, pushes, leaseSeconds, version }) => [
      [name, isSelf && ` (${t('this one')})`], [t(state), isKeeper && ` (${t('keeper')})`], count(pushes), duration(leaseSeconds), version,
      may(rights.drainNode) && state === 'running' && dangerous(t('Drain'), `${t('Drain')}: ${name}`, t('Nobody new is let in; it ends with its last push, after drain.timeout at most.'),
        () => post(`/nodes/${name}/drain`), t('Began to end the server'), nodes)])));
  }

  async function check() {
    const verdict = await get('/selfcheck');
    show(places.check, h('h2', null, t('Self-check')), verdict.ok ? dim(t('All counters agree.'))
      : table('', [t('Name'), t('What')], verdict.list.filter((each) => !each.ok).map((each) => [each.name, `${each.actual} ≠ ${each.expected}: ${each.help}`])));
  }
  const stops = [every(5000, load), every(5000, refused.update), every(5000, nodes), every(60000, check)];
  return { element, title: t('Server'), stop() { stops.forEach((stop) => stop()); } };
}
