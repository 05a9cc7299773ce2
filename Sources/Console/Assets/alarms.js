// What the server needs help with, on every page.
import { get, may } from './api.js';
import { h, show } from './dom.js';
import { bytes, count, duration, ms } from './format.js';
import { t } from './i18n.js';
import { readings, readMetrics } from './metrics.js';
import { rights } from './rights.js';
import { every } from './ui.js';

const day = 86400;
// The bounds of deploy/prometheus/alerts.yaml.
const lateMs = 500;
const fullShare = 0.9;

/** Free bytes of a disk against the setting data.minFree. */
function ofDisk(free, least, isRecordings) {
  if (!least || free === undefined || free >= 2 * least) return null;
  const values = { free: bytes(free), least: bytes(least) };
  if (isRecordings) return t('The disk of the recordings is nearly full: {free} are left.', values);
  return free < least ? t('The disk of the data directory is full: {free} are left, and {least} must stay free (data.minFree). No new push or room begins.', values)
    : t('The disk of the data directory is nearly full: {free} are left. Below {least} no new push or room begins (data.minFree).', values);
}

function ofCertificate(seconds) {
  if (seconds === undefined || seconds >= 14 * day) return null;
  const time = duration(Math.abs(seconds));
  return seconds < 0 ? t('The TLS certificate ended {time} ago: clients that check it do not connect. Renew it, then reload the settings.', { time })
    : t('The TLS certificate ends in {time}. Renew it, then reload the settings.', { time });
}

/** The alarms of a reading, the worst first: [{text, isBad}]. `state`: the server's. */
export function alarmsOf({ problem, drain, reloadProblem }, metrics) {
  const [free, least] = [metrics.earshot_store_free_bytes, metrics.earshot_store_min_free_bytes];
  const isShort = least > 0 && free < least;
  const isFailing = metrics.earshot_store_failing === 1;
  const [used, limit] = [metrics.earshot_memory_used_bytes, metrics.earshot_memory_limit_bytes];
  const [open, most] = [metrics.process_open_fds, metrics.process_max_fds];
  // A core that is late once is none that stays late.
  const late = Math.min(...readings.slice(-2).map(({ lag }) => lag));
  const recordings = metrics.disks.get('recordings');
  const bad = [
    drain && t('The server ends in {time} at most.', { time: duration(drain.secondsLeft) }),
    isFailing && t('The database of the rooms cannot be written: no new push or room begins. Changes that wait: {n}.', { n: count(metrics.earshot_store_waiting_facts) }),
    isShort && ofDisk(free, least),
    // Told above in words.
    problem && !drain && !isFailing && !isShort && t('No new pushes and plays: {problem}', { problem }),
    metrics.earshot_certificate_expires_in_seconds < day && ofCertificate(metrics.earshot_certificate_expires_in_seconds),
    readings.length > 1 && late > lateMs && t('The server is overloaded: its busiest core answers late by {time}.', { time: ms(late) }),
  ];
  const soon = [
    !isShort && ofDisk(free, least),
    recordings !== free && ofDisk(recordings, least, true),
    used > limit * fullShare && t('The memory for media is nearly used up: {used} of {limit} (limits.memory). When it is full, pushes and plays are refused.', { used: bytes(used), limit: bytes(limit) }),
    metrics.earshot_certificate_expires_in_seconds >= day && ofCertificate(metrics.earshot_certificate_expires_in_seconds),
    open > most * 0.8 && t('{n} of {limit} file descriptors are in use: raise the limit of open files.', { n: count(open), limit: count(most) }),
    reloadProblem && t('The changed settings or certificate were not taken, and the former ones stay: {problem}', { problem: reloadProblem }),
  ];
  return [...bad.map((text) => ({ text, isBad: true })), ...soon.map((text) => ({ text, isBad: false }))].filter(({ text }) => text);
}

/** The banner. It asks while it is shown; `stop` ends that. */
export function alarmBanner() {
  const element = h('ul', { class: 'alarms', 'aria-live': 'polite', 'aria-label': t('Alarms of the server'), hidden: true });
  if (!may(rights.getServer) || !may(rights.getMetrics)) return { element, stop() {} };
  let drawn = '';
  const stop = every(10000, async () => {
    const [state, metrics] = await Promise.all([get('/server'), readMetrics()]);
    const found = alarmsOf(state, metrics);
    const key = JSON.stringify(found);
    // Drawn anew, it would be read out again.
    if (key === drawn) return;
    drawn = key;
    element.hidden = !found.length;
    show(element, found.map(({ text, isBad }) => h('li', { class: isBad && 'bad' }, text)));
  }, true);
  return { element, stop };
}
