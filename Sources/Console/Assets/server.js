// The server's condition: connections, loops, memory, limits, and why connections ended.
import { get, load as loadFile, may, post, session, whyNot } from './api.js';
import { coded, limits, reasonWords } from './codes.js';
import { aside, dim, h, head, panel, show } from './dom.js';
import { bytes, count, duration, ms, none } from './format.js';
import { t } from './i18n.js';
import { refusals } from './refusals.js';
import { rights } from './rights.js';
import { dangerous, every, number, table } from './ui.js';

/** Reads metrics in Prometheus' text format: those without labels by name, the loops' lags, connections by protocol, and hits by limit. */
function read(text) {
  const values = { lags: [], protocols: new Map(), limits: new Map() };
  for (const line of text.split('\n')) {
    const found = /^(\w+) (\S+)$/.exec(line);
    if (found) values[found[1]] = Number(found[2]);
    const lag = /^earshot_event_loop_lag_seconds\{loop="(\d+)"\} (\S+)$/.exec(line);
    if (lag) values.lags[Number(lag[1])] = Number(lag[2]) * 1000;
    const protocol = /^earshot_connections_by_protocol\{protocol="([\w-]+)"\} (\S+)$/.exec(line);
    if (protocol) values.protocols.set(protocol[1], Number(protocol[2]));
    const limit = /^earshot_limit_hits_total\{limit="([\w.]+)"\} (\S+)$/.exec(line);
    if (limit) values.limits.set(limit[1], Number(limit[2]));
  }
  return values;
}

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
  const places = { nodes: h('section', { class: 'panel', hidden: true }), protocols: panel(), ends: panel(), loops: panel(), limits: panel(), check: panel() };
  show(sections, [refused.element, ...Object.values(places)]);

  function warn({ problem, drain, needRestart }, { process_open_fds: open, process_max_fds: most }) {
    const found = [problem && t('No new pushes and plays: {problem}', { problem }), drain && t('The server ends in {time} at most.', { time: duration(drain.secondsLeft) }),
      needRestart.length > 0 && t('These settings wait for a restart: {names}', { names: needRestart.map((each) => each.setting).join(', ') }),
      open > most * 0.8 && t('{n} of {limit} file descriptors are in use: raise the limit of open files.', { n: count(open), limit: count(most) })].filter(Boolean);
    warnings.hidden = !found.length;
    show(warnings, found.map((text) => h('li', null, text)));
  }

  // Since the last reading.
  let look = null;
  function cpu(seconds) {
    const now = { at: performance.now(), seconds };
    const share = look && now.at > look.at ? (seconds - look.seconds) * 1000 / (now.at - look.at) : null;
    look = now;
    return share === null || !Number.isFinite(share) ? none : `${Math.round(share * 100)} %`;
  }

  /** Shows counts above zero, the largest first. `words` makes a name readable. */
  function list(place, title, column, counts, words, otherwise) {
    const found = counts.filter(([, value]) => value > 0).sort((one, other) => other[1] - one[1]);
    show(place, h('h2', null, title), found.length || !otherwise ? table('', [column, number(t('Connections'))], found.map(([name, value]) => [words(name), count(value)])) : dim(otherwise));
  }

  async function load() {
    const [counters, text, state] = await Promise.all([get('/counters'), loadFile('/metrics').then((file) => file.text()), get('/server')]);
    const metrics = read(text);
    warn(state, metrics);
    const figure = (name, value, more) => h('div', { class: 'figure' }, aside(name), h('b', null, value), more && aside(more));
    show(figures,
      figure(t('Live streams'), count(metrics.earshot_streams_live)), figure(t('Viewers'), count(metrics.earshot_viewers)), figure(t('Connections'), count(metrics.earshot_connections)),
      figure(t('Busiest core answers late by'), ms(metrics.earshot_loop_lag_seconds * 1000)),
      figure(t('CPU'), cpu(metrics.process_cpu_seconds_total), t('of one core')),
      figure(t('Memory'), bytes(metrics.process_resident_memory_bytes)), figure(t('Runs for'), duration(metrics.process_uptime_seconds)),
      figure(t('Memory for media'), bytes(counters.memoryUsedBytes), t('used of {limit}', { limit: '' }) + bytes(counters.memoryLimitBytes)),
      figure(t('Pushes begun'), count(counters.publishesStarted)), figure(t('Plays begun'), count(counters.playsStarted)));
    list(places.ends, t('Why connections ended'), t('Reason'), Object.entries(counters.closed), (reason) => coded(reasonWords(reason), reason), t('Nothing has ended yet.'));
    const others = Object.keys(limits).filter((name) => !metrics.limits.has(name)).map((name) => [name, counters[name] ?? metrics[name]]);
    list(places.limits, t('Limits hit'), t('Reason'), [...metrics.limits, ...others], (name) => coded(t(limits[name] ?? name), name), t('No limit was hit.'));
    show(places.loops, h('h2', null, t('Event loops')), dim(t('Each serves its share of the connections. One that is late for long takes no new viewers until it is not: the setting limits.lag.')),
      table('', [t('Loop'), number(t('Answers late by'))], metrics.lags.map((lag, index) => [index + 1, ms(lag)])));
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
