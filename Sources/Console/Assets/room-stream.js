// A stream on a room's page: its picture, why it is bad, and its figures.
import { get, may, url } from './api.js';
import { chart } from './chart.js';
import { dim, h, panel, setText, show } from './dom.js';
import { isSoundOnly } from './figures.js';
import { bits, count, ms, none, time } from './format.js';
import { t } from './i18n.js';
import { reasonText } from './reasons.js';
import { rights } from './rights.js';
import { playerWords, SignedPlayer, socketAddress } from './signed-player.js';
import { button, clamped, fail, small, verdictBadge } from './ui.js';

/** Encodes a part of a URL. */
export const part = (text) => encodeURIComponent(text);
export const streamPath = (slot) => `/streams/${part(slot.app)}/${part(slot.name)}`;

// --- The live picture

export function preview(roomNow, slotNow, path, figures) {
  const video = h('video', { muted: true, autoplay: true, playsinline: true, controls: true, id: 'preview' });
  const status = h('p', { role: 'status' });
  const delay = h('span', { class: 'dim', id: 'delay' });
  const box = h('div', { class: 'player' }, video, status);
  const note = h('p', { class: 'dim', hidden: true }, t('Sound only: this stream has no picture.'));
  // Changes nothing and shows its result: no question, no notice.
  const shot = small(t('Snapshot'), async () => window.open(url(`${path}/snapshot.jpg`, { slot: slotNow().slot }), '_blank', 'noopener'));
  const element = h('section', { class: 'panel', 'aria-label': t('Preview') }, box, note, h('div', { class: 'row spread' }, delay, may('backend') && shot));
  let player = null;
  let playing = null;
  let isLate = false;

  function start(slot) {
    const key = `${slot.app}/${slot.name}`;
    if (playing === key) return;
    stop();
    playing = key;
    player = new SignedPlayer(video, async () => {
      const { streams } = await get(`${path}/play-urls`, { lifetime: 3600 });
      return socketAddress(streams.find((each) => each.slot === slot.slot).mp4);
    }, (text) => setText(status, playerWords(text)));
    player.start();
  }

  function stop() {
    player?.stop();
    player = null;
    playing = null;
  }

  const timer = setInterval(() => {
    const behind = player?.ahead ?? null;
    setText(delay, behind === null || behind < 0 || behind > 60 ? '' : [t('Player buffer {ms}', { ms: ms(behind * 1000) }), isLate && t('The encoder itself is behind: see the verdict.')].filter(Boolean).join(' · '));
  }, 500);

  return {
    element,
    /** For how long this page has been a viewer itself, in seconds; null while it is none. */
    get seconds() { return player?.seconds ?? null; },
    async update() {
      const slot = slotNow();
      const isSound = isSoundOnly(await figures());
      box.classList.toggle('sound', isSound);
      note.hidden = !isSound;
      shot.hidden = !slot?.isActive || isSound;
      if (roomNow().state === 'live' && slot?.isActive) start(slot);
      else if (roomNow().state !== 'interrupted' || !playing) {
        if (playing) stop();
        const { state, expiresAt, forbidReason } = roomNow();
        setText(status, state === 'forbidden' ? [t('Forbidden until {time}', { time: time(expiresAt) }), forbidReason].filter(Boolean).join(': ') : t('No picture'));
      }
      isLate = (await figures())?.reasons.some((reason) => reason.code === 'media_behind_clock') ?? false;
    },
    stop() { clearInterval(timer); stop(); },
  };
}

// --- Why it is bad

export function health(figures, showSlow) {
  const element = h('section', { class: 'panel', 'aria-live': 'polite' });
  element.hidden = true;
  const self = {
    element, verdict: null,
    async update() {
      const stream = await figures();
      self.verdict = stream?.verdict ?? null;
      element.hidden = !self.verdict;
      if (!self.verdict) return;
      const slow = stream.slowViewers;
      const key = JSON.stringify([stream.reasons, slow]);
      if (key === self.drawn) return;
      self.drawn = key;
      show(element, h('h2', null, t('Verdict'), ' ', verdictBadge(self.verdict), ' ', slow > 0 && button(t('{n} slow viewers', { n: count(slow) }), async () => showSlow(), { class: 'badge degraded' })),
        stream.reasons.length
          ? h('ul', { class: 'reasons' }, stream.reasons.map((reason) => h('li', null, clamped(reasonText(reason, stream), reason.code), h('code', { class: 'dim' }, reason.code),
            reason.value !== null && reason.expected !== null && h('div', { class: 'dim' }, t('measured {value}, expected {expected}', { value: amount(reason.value, reason.unit), expected: amount(reason.expected, reason.unit) })))))
          : dim(slow ? t('The stream is well. Slow viewers: {n}, see below.', { n: count(slow) }) : t('All is well.')));
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

export function charts(slotNow, figures, watchedFor) {
  const all = { bitRate: chart(t('Bit rate'), bits), fps: chart(t('Frames per second'), (value) => (value === null ? none : Number(value).toFixed(value < 10 ? 1 : 0))),
    jitter: chart(t('Arrival jitter'), ms), keyframes: chart(t('Keyframe interval'), ms), viewers: chart(t('Viewers'), count) };
  const nothing = dim();
  let span = '300';
  let isDrawn = false;
  let isChosen = false;
  const choice = h('select', { 'aria-label': t('Charts'), onchange: (event) => { isChosen = true; span = event.target.value; update().catch(fail); } }, spans.map(([value, label]) => h('option', { value }, t(label))));
  const element = panel(h('div', { class: 'row spread' }, h('h2', null, t('Charts')), choice), nothing, Object.values(all).map((each) => each.element));
  element.hidden = !may(rights.getStreamStats);
  for (const each of Object.values(all)) each.element.hidden = true;

  /** A stream without a picture has no rate of them. */
  function hidePictures(rows, stream) {
    const isWithout = rows.length ? !stream?.video && rows.every((row) => !row.fps) : isSoundOnly(stream);
    all.fps.element.hidden = all.keyframes.element.hidden = isWithout;
  }

  async function update() {
    const slot = slotNow();
    if (!slot || element.hidden) return;
    // Without a push there are no new seconds. The drawn chart stays; a page opened after the push shows the hours before.
    if (!isChosen) choice.value = span = slot.isActive || isDrawn ? '300' : 'hours';
    if (span === '300') {
      if (!slot.isActive) return Object.values(all).forEach((each) => each.end());
      isDrawn = true;
      setText(nothing, '');
      // Both before anything is drawn: else a stream without a picture shows the charts of pictures for a moment.
      const [{ list }, stream] = await Promise.all([get(`${streamPath(slot)}/stats`), figures()]);
      const draw = (name, value) => { all[name].element.hidden = false; all[name].update(list.map((second) => ({ at: second.at, value: value(second) }))); };
      draw('bitRate', (second) => second.videoBitsPerSecond + second.audioBitsPerSecond);
      draw('fps', (second) => second.fps);
      draw('jitter', (second) => second.arrivalJitterMs);
      draw('keyframes', (second) => second.keyframeIntervalMs);
      // This page's own preview is none of them.
      const since = Date.now() - (watchedFor() ?? -Infinity) * 1000;
      draw('viewers', (second) => Math.max(0, second.viewers - (Date.parse(second.at) >= since ? 1 : 0)));
      hidePictures(list, stream);
      return;
    }
    const seconds = span === 'hours' ? 86400 : 31 * 86400;
    const kept = get(`/stats${streamPath(slot)}`, { from: new Date(Date.now() - seconds * 1000).toISOString(), step: span === 'hours' ? 600 : 3600 }).catch((error) => {
      // The server keeps no figures; see its setting stats.enabled.
      if (error.status === 409) return { list: [], step: 1 };
      throw error;
    });
    const [data, stream] = await Promise.all([kept, figures()]);
    setText(nothing, '');
    for (const each of Object.values(all)) each.element.hidden = false;
    hidePictures(data.list, stream);
    all.fps.update(data.list.map((row) => ({ at: row.at, value: row.fps })));
    all.jitter.update(data.list.map((row) => ({ at: row.at, value: row.arrivalJitterMs })));
    all.keyframes.update(data.list.map((row) => ({ at: row.at, value: row.keyframeIntervalMs })));
    all.bitRate.update(data.list.map((row) => ({ at: row.at, value: row.bytesIn * 8 / Math.max(1, Math.min(data.step, (Date.now() - Date.parse(row.at)) / 1000)) })));
    all.viewers.update(data.list.map((row) => ({ at: row.at, value: row.viewersPeak })));
    if (!slot.isActive) Object.values(all).forEach((each) => each.end());
  }
  return { element, update };
}
