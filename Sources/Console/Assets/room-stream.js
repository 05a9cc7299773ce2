// What a room's page shows of a stream: its picture, why it is bad, its figures, and who watches.
import { get, may, remove, url } from './api.js';
import { chart } from './chart.js';
import { coded, reasonWords } from './codes.js';
import { h, setText, show } from './dom.js';
import { bits, bytes, clock, count, duration, ms, none } from './format.js';
import { t } from './i18n.js';
import { LivePlayer } from './live-player.js';
import { reasonText } from './reasons.js';
import { rights } from './rights.js';
import { ask, button, fail, inform, notice, table, verdictBadge } from './ui.js';

/** Of a part of an address. */
export const part = (text) => encodeURIComponent(text);
export const streamPath = (slot) => `/streams/${part(slot.app)}/${part(slot.name)}`;

// --- The live picture

export function preview(roomNow, slotNow, path) {
  const video = h('video', { muted: true, autoplay: true, playsinline: true, controls: true, id: 'preview' });
  const status = h('p', { role: 'status' });
  const delay = h('span', { class: 'dim', id: 'delay' });
  const box = h('div', { class: 'player' }, video, status);
  const element = h('section', { class: 'panel', 'aria-label': t('Preview') }, box, h('div', { class: 'row spread' }, delay, may('app') && button(t('Snapshot'), async () => {
    const slot = slotNow();
    window.open(url(`${path}/snapshot.jpg`, { slot: slot.slot }), '_blank', 'noopener');
  }, { class: 'small' })));
  let player = null;
  let playing = null;

  async function start(slot) {
    const key = `${slot.app}/${slot.name}`;
    if (playing === key) return;
    stop();
    playing = key;
    const urls = await get(`${path}/play-urls`, { lifetime: 3600 });
    if (playing !== key) return;
    const signed = new URL(urls.streams.find((each) => each.slot === slot.slot).mp4);
    // The same server that this page came from, whatever name the URL gives it.
    const address = new URL(signed.pathname + signed.search, location.href);
    address.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
    player = new LivePlayer(video, address.href, (text) => setText(status, t(text)));
    player.start();
  }

  function stop() {
    player?.stop();
    player = null;
    playing = null;
  }

  const timer = setInterval(() => {
    const ranges = video.buffered;
    const behind = player && ranges.length ? ranges.end(ranges.length - 1) - video.currentTime : null;
    setText(delay, behind === null || behind < 0 || behind > 60 ? '' : t('Delay {ms}', { ms: ms(behind * 1000) }));
  }, 500);

  return {
    element,
    async update() {
      const slot = slotNow();
      if (roomNow().state === 'live' && slot?.isActive) await start(slot);
      else if (!slot?.isActive && roomNow().state !== 'interrupted' && playing) { stop(); setText(status, t('No picture')); }
      else if (!playing) setText(status, t('No picture'));
    },
    stop() { clearInterval(timer); stop(); },
  };
}

// --- Why it is bad

export function health(figures) {
  const element = h('section', { class: 'panel', 'aria-live': 'polite' });
  element.hidden = true;
  const self = {
    element, verdict: null,
    async update() {
      const stream = await figures();
      self.verdict = stream?.verdict ?? null;
      element.hidden = !self.verdict;
      if (!self.verdict) return;
      const key = JSON.stringify(stream.reasons);
      if (key === self.drawn) return;
      self.drawn = key;
      show(element, h('h2', null, t('Verdict'), ' ', verdictBadge(self.verdict)),
        stream.reasons.length
          ? h('ul', { class: 'reasons' }, stream.reasons.map((reason) => h('li', null, reasonText(reason, stream), ' ', h('code', { class: 'dim' }, reason.code),
            reason.value !== null && reason.expected !== null && h('div', { class: 'dim' }, t('measured {value}, expected {expected}', { value: amount(reason.value, reason.unit), expected: amount(reason.expected, reason.unit) })))))
          : h('p', { class: 'dim' }, t('All is well.')));
    },
  };
  return self;
}

function amount(value, unit) {
  if (unit === 'ms') return ms(value);
  if (unit === 'bit/s') return bits(value);
  return `${Math.round(value * 100) / 100} ${unit ?? ''}`.trim();
}

// --- Figures over time

const spans = [['300', 'Last minutes'], ['hours', 'Last hours'], ['days', 'Last days']];

export function charts(slotNow) {
  const all = { bitRate: chart(t('Bit rate'), bits), fps: chart(t('Frames per second'), (value) => (value === null ? none : Number(value).toFixed(value < 10 ? 1 : 0))),
    jitter: chart(t('Arrival jitter'), ms), keyframes: chart(t('Keyframe interval'), ms), viewers: chart(t('Viewers'), count) };
  const nothing = h('p', { class: 'dim' });
  let span = '300';
  let isDrawn = false;
  const choice = h('select', { 'aria-label': t('Charts'), onchange: (event) => { span = event.target.value; update().catch(fail); } }, spans.map(([value, label]) => h('option', { value }, t(label))));
  const element = h('section', { class: 'panel' }, h('div', { class: 'row spread' }, h('h2', null, t('Charts')), choice), nothing, Object.values(all).map((each) => each.element));
  element.hidden = !may(rights.getStreamStats);
  for (const each of Object.values(all)) each.element.hidden = true;

  async function update() {
    const slot = slotNow();
    if (!slot || element.hidden) return;
    if (span === '300') {
      // Without a push there are no new seconds. What is drawn stays; a page that is opened after the push shows the hours before.
      if (!slot.isActive) {
        if (isDrawn) return;
        isDrawn = true;
        choice.value = span = 'hours';
        return update();
      }
      isDrawn = true;
      setText(nothing, '');
      const { list } = await get(`${streamPath(slot)}/stats`);
      const draw = (name, value) => { all[name].element.hidden = false; all[name].update(list.map((second) => ({ at: second.at, value: value(second) }))); };
      draw('bitRate', (second) => second.videoBitsPerSecond + second.audioBitsPerSecond);
      draw('fps', (second) => second.fps);
      draw('jitter', (second) => second.arrivalJitterMs);
      draw('keyframes', (second) => second.keyframeIntervalMs);
      draw('viewers', (second) => second.viewers);
      return;
    }
    const seconds = span === 'hours' ? 86400 : 31 * 86400;
    const data = await get(`/stats${streamPath(slot)}`, { from: new Date(Date.now() - seconds * 1000).toISOString(), step: span === 'hours' ? 600 : 3600 }).catch((error) => {
      // The server keeps no figures: its setting stats.enabled.
      if (error.status === 409) return { list: [], step: 1 };
      throw error;
    });
    setText(nothing, '');
    for (const name of Object.keys(all)) all[name].element.hidden = !['bitRate', 'viewers'].includes(name);
    all.bitRate.update(data.list.map((row) => ({ at: row.at, value: row.bytesIn * 8 / data.step })));
    all.viewers.update(data.list.map((row) => ({ at: row.at, value: row.viewersPeak })));
  }
  return { element, update };
}

// --- Who watches

// A viewer further behind than this is told why.
const slowMs = 1500;

export function viewers(slotNow, figures) {
  const element = h('section', { class: 'panel' });
  element.hidden = !may(rights.listSessions);
  const now = h('div');
  const left = h('div', { class: 'below' });
  show(element, now, left);
  // By session: what it had been sent, and when. From it comes what the viewer takes.
  let seen = new Map();
  let leftAt = 0;

  /** Bits per second since the last look, null at the first one. */
  function rate(id, sent, at) {
    const before = seen.get(id);
    return before && at - before.at >= 1000 ? Math.max(0, (sent - before.sent) * 8000 / (at - before.at)) : before?.rate ?? null;
  }

  function why(behindMs, takes, whole) {
    if (!(behindMs > slowMs)) return null;
    if (takes === null || !whole) return t('too slow for this stream');
    if (takes >= whole * 0.95) return t('it catches up');
    return t('takes {rate} of {whole}: its network or its player is too slow', { rate: bits(takes), whole: bits(whole) });
  }

  async function update() {
    const slot = slotNow();
    if (!slot || element.hidden) return;
    const stream = `${slot.app}/${slot.name}`;
    const [data, whole] = await Promise.all([get('/sessions', { stream, role: 'player', limit: 100 }), figures()]);
    const at = performance.now();
    const next = new Map();
    const rows = data.list.map((session) => {
      const play = session.playing.find((each) => each.stream === stream) ?? {};
      const takes = rate(session.sessionId, play.bytesSent, at);
      const before = seen.get(session.sessionId);
      next.set(session.sessionId, before && at - before.at < 1000 ? before : { sent: play.bytesSent, at, rate: takes });
      return { session, play, takes };
    }).sort((one, other) => (other.play.behindMs ?? 0) - (one.play.behindMs ?? 0));
    const hasLeft = [...seen.keys()].some((id) => !next.has(id));
    seen = next;
    if (hasLeft || !leftAt || at - leftAt > 60000) { leftAt = at; await showLeft(slot, stream).catch(() => {}); }
    // A row whose button has the focus would lose it.
    if (now.contains(document.activeElement) && document.activeElement.tagName === 'BUTTON') return;
    const isHere = (session) => session.transport === 'ws-fmp4' && session.client === navigator.userAgent.slice(0, 200);
    show(now, h('h2', null, `${t('Viewers')} (${count(data.total)})`), rows.length
      ? table('', [t('Address'), t('Protocol'), t('Client'), { name: t('Behind live'), isNumber: true }, { name: t('Frames skipped'), isNumber: true }, { name: t('Sent'), isNumber: true }, ''],
        rows.map(({ session, play, takes }) => [session.address, [session.transport, h('div', { class: 'dim' }, duration(session.seconds))],
          h('div', { class: 'client', title: session.client ?? '' }, isHere(session) ? t('a console like this one') : session.client ?? none),
          [ms(play.behindMs), h('div', { class: 'slow' }, why(play.behindMs, takes, whole?.bitsPerSecond))], count(play.framesSkipped), bytes(play.bytesSent),
          h('span', { class: 'row tight' }, traceButton(session.sessionId), endButton(session.sessionId, update))]))
      : h('p', { class: 'dim' }, t('No viewers.')),
    data.total > data.list.length && h('p', { class: 'dim' }, t('and {n} more', { n: count(data.total - data.list.length) })));
  }

  /** Who is gone, and why: a viewer that is cut vanishes from the list above. */
  async function showLeft(slot, stream) {
    if (!may(rights.listFinishedPlays)) return;
    const { list } = await get('/stats/plays', { stream, limit: 5 });
    show(left, list.length > 0 && [h('h3', null, t('Left lately')), table('', [t('Time'), t('Address'), t('Client'), t('Reason'), { name: t('At worst behind'), isNumber: true }],
      list.map((play) => [clock(play.endedAt), play.address, h('div', { class: 'client', title: play.client ?? '' }, play.client ?? none), coded(reasonWords(play.reason), play.reason), ms(play.behindMs)]))]);
  }
  return { element, update };
}

function endButton(id, update) {
  return may(rights.endSession) && button(t('End'), async () => {
    if (await ask(t('End'), t('End this connection? Its client may connect again.'), [], () => remove(`/sessions/${id}`), { verb: t('End'), isDanger: true })) { notice(t('Ended.')); await update(); }
  }, { class: 'small' });
}

export function traceButton(id) {
  return may(rights.getSessionTrace) && button(t('Trace'), async () => {
    const data = await get(`/sessions/${id}/trace`);
    const arrows = { in: '→', out: '←' };
    const lines = data.entries.map((entry) => {
      const message = entry.message && `${ms(entry.message.timestampMs)}, ${bytes(entry.message.bytes)} ${entry.message.flags.join(' ')}`;
      return `${(-entry.agoMs / 1000).toFixed(2).padStart(8)} s ${arrows[entry.direction] ?? '·'} ${entry.kind} ${[entry.name, entry.text, message].filter(Boolean).join('  ')}`;
    });
    inform(`${t('Trace')} ${id}`, h('pre', { class: 'trace' }, lines.join('\n') || none));
  }, { class: 'small' });
}
