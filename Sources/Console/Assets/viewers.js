// A stream's viewers: which are behind and whose fault that is, and which have left.
import { get, may, remove } from './api.js';
import { coded, plainEnds, reasonWords } from './codes.js';
import { aside, dim, h, panel, show } from './dom.js';
import { bits, bytes, clock, count, duration, ms, none } from './format.js';
import { t } from './i18n.js';
import { rights } from './rights.js';
import { ask, button, inform, notice, number, redraw, small, table } from './ui.js';

// Nearer to live than this, a slow viewer has caught up.
const nearMs = 500;
const rememberedMs = 60_000;
// How many viewers are listed.
const most = 100;
// Viewers that left: how many are listed, and requested.
const mostLeft = 5;
const mostSought = 50;
const leftWithinMs = 24 * 3600_000;
// A shorter observation says little about a viewer's throughput.
const leastMs = 3000;
// As the server keeps it.
const agent = navigator.userAgent.slice(0, 200);

/** The observations of one viewer in the last minute. */
class Watch {
  constructor() { this.looks = []; }

  note({ bytesSent, framesSkipped, behindMs }, seconds) {
    const at = performance.now();
    // A page that was just opened knows only totals. They are scaled to at most the last 30 seconds, as if the viewer had been observed then.
    if (!this.looks.length && framesSkipped > 0 && seconds * 1000 > leastMs) {
      const known = Math.min(seconds, 30), before = 1 - known / seconds;
      this.looks.push({ at: at - known * 1000, bytesSent: bytesSent * before, framesSkipped: Math.round(framesSkipped * before), behindMs: 0 });
    }
    if (this.looks.length > 1 && at - this.looks.at(-1).at < 1000) return;
    this.looks.push({ at, bytesSent, framesSkipped, behindMs: behindMs ?? 0 });
    while (this.looks.length > 2 && at - this.looks[0].at > rememberedMs) this.looks.shift();
  }

  get isFresh() { return performance.now() - this.looks.at(-1).at < rememberedMs; }
  get spanMs() { return this.looks.length > 1 ? this.looks.at(-1).at - this.looks[0].at : 0; }
  get skipped() { return this.looks.at(-1).framesSkipped - this.looks[0].framesSkipped; }
  get worstMs() { return Math.max(...this.looks.map((look) => look.behindMs)); }
  /** Bits per second; null when it has not been observed for long enough. */
  get takes() { return this.spanMs < leastMs ? null : Math.max(0, (this.looks.at(-1).bytesSent - this.looks[0].bytesSent) * 8000 / this.spanMs); }
}

/** Why the server calls a viewer slow; null when it does not. `whole`: the stream's bits per second. */
function why(play, watch, whole, slowOnes, all) {
  if (!play.isSlow) return null;
  // What its own reports say is the cause, not a sign of it.
  const { line } = play;
  if (line?.verdict === 'lossy') return t('Its line loses {n} % of the packets; {again} were sent again. Its network is too weak, or too far.', { n: line.lossPercent, again: count(line.repeats) });
  if (line?.verdict === 'congested') return t('Packets wait {ms} on the way to it: its line takes fewer bits than the stream has.', { ms: ms(Math.round(line.queuedMs)) });
  const isBack = watch.skipped === 0 && watch.looks.at(-1).behindMs <= nearMs;
  if (isBack) return aside(t('It was behind within the last minute, and has caught up.'));
  const { takes } = watch;
  if (takes === null || !whole) return t('Slow: it does not keep up with the stream. Measuring…');
  if (takes >= whole * 0.95) return aside(t('Frames left out for it in {time}: {n}. Otherwise it keeps up.', { n: count(watch.skipped), time: duration(watch.spanMs / 1000) }));
  const how = t('Slow: takes {rate} of {whole}, {n} frames skipped in the last {time} to keep it near live.', { rate: bits(takes), whole: bits(whole), n: count(watch.skipped), time: duration(watch.spanMs / 1000) });
  const whose = all > 1 && slowOnes < all ? t('Other viewers get this stream in time: it is the network or the player of this one.')
    : all > 1 ? t('All viewers of this stream are slow: look at the network of this server first.') : t('Its network or its player is too slow.');
  return `${how} ${whose}`;
}

/** `watchedFor`: for how many seconds this page plays the stream itself; null when it does not. */
export function viewers(slotNow, figures, watchedFor) {
  const element = panel();
  element.hidden = !may(rights.listSessions);
  const now = h('div');
  const left = h('div', { class: 'below' });
  show(element, now, left);
  let watches = new Map();
  let leftAt = 0;
  const isHere = (client) => client === agent;
  const clientCell = (client) => h('div', { class: 'client', title: client ?? '' }, isHere(client) ? t('a console like this one') : client ?? none);

  async function update() {
    const slot = slotNow();
    if (!slot || element.hidden) return;
    const stream = `${slot.app}/${slot.name}`;
    // However many there are, those that are furthest behind are among the listed ones.
    const [data, whole] = await Promise.all([get('/sessions', { stream, role: 'player', sort: '-behind', limit: most }), figures()]);
    const next = new Map();
    // The operator's own look at the stream is no viewer's.
    const own = ownPreview(data.list, watchedFor());
    const total = data.total - (own ? 1 : 0);
    const all = data.list.filter((session) => session !== own).map((session) => {
      const play = session.playing.find((each) => each.stream === stream) ?? {};
      const watch = watches.get(session.sessionId) ?? new Watch();
      watch.note(play, session.seconds);
      next.set(session.sessionId, watch);
      return { session, play, watch };
    }).sort((one, other) => other.play.isSlow - one.play.isSlow || (other.play.behindMs ?? 0) - (one.play.behindMs ?? 0));
    const isWhole = data.total === data.list.length;
    const missing = [...watches].filter(([id]) => !next.has(id));
    // If the audience exceeds the list, a missing viewer may be in the next one: keep its last minute's observations.
    if (!isWhole) for (const [id, watch] of missing) if (watch.isFresh) next.set(id, watch);
    const hasLeft = isWhole && missing.length > 0;
    watches = next;
    const slowOnes = all.filter((each) => each.play.isSlow).length;
    const at = performance.now();
    if (hasLeft || !leftAt || at - leftAt > 60000) { leftAt = at; await showLeft(stream).catch(() => {}); }
    if (document.querySelector('dialog[open]')) return;
    // Without media no viewer can be behind.
    const stands = whole && whole.bitsPerSecond === 0;
    redraw(now, () => show(now, h('h2', null, `${t('Viewers')} (${count(total)})`), all.length
      ? table('', [t('Address'), t('Client'), t('Protocol'), number(t('Behind live')), number(t('Skipped in all')), number(t('Sent')), ''],
        all.map(({ session, play, watch }) => Object.assign([session.address, clientCell(session.client), h('span', { class: 'whole' }, session.transport, aside(` ${duration(session.seconds)}`)),
          stands ? t('stands') : [ms(play.behindMs), play.isSlow && h('div', { class: 'dim' }, t('worst {ms}', { ms: ms(watch.worstMs) }))], count(play.framesSkipped), bytes(play.bytesSent),
          h('span', { class: 'row tight' }, traceButton(session), endButton(session, stream, update))], { note: stands ? null : why(play, watch, whole?.bitsPerSecond, slowOnes, all.length) })))
      : dim(t('No viewers.')),
    own && dim(t('The preview above is not counted.')),
    !isWhole && dim(t('and {n} more', { n: count(data.total - data.list.length) }))));
  }

  /** The viewers that left, and why: first those that were cut, which vanish from the list above; none like this page. */
  async function showLeft(stream) {
    if (!may(rights.listFinishedPlays)) return;
    const all = { stream, from: new Date(Date.now() - leftWithinMs).toISOString() };
    const [newest, cut] = await Promise.all([get('/stats/plays', { ...all, limit: mostSought }), get('/stats/plays', { ...all, reason: 'too_slow', limit: mostLeft })]);
    const isPlain = (play) => plainEnds.includes(play.reason);
    const ended = [...new Map([...newest.list, ...cut.list].map((play) => [play.playId, play])).values()].filter((play) => !isPlain(play) || !isHere(play.client));
    const list = ended.sort((one, other) => isPlain(one) - isPlain(other) || other.playId - one.playId).slice(0, mostLeft).sort((one, other) => other.playId - one.playId);
    show(left, list.length > 0 && [h('h3', null, t('Left lately')), table('', [t('Time'), t('Address'), t('Client'), t('Reason'), number(t('Most behind')), number(t('Frames skipped'))],
      list.map((play) => Object.assign([clock(play.endedAt), play.address, clientCell(play.client), coded(reasonWords(play.reason), play.reason), ms(play.behindMs), count(play.framesSkipped)],
        { note: play.reason === 'too_slow' && t('It was up to {ms} behind live, further than the setting relay.maxBehind allows: its network or its player was too slow.', { ms: ms(play.behindMs) }) })))]);
  }

  function showSlow() {
    const row = now.querySelector('tr.noted');
    row?.scrollIntoView({ block: 'center' });
    row?.querySelector('button')?.focus();
  }
  return { element, update, showSlow };
}

/** The session of a page's own preview, which has played for so many `seconds`: the one of this browser that began nearest to it. */
function ownPreview(sessions, seconds) {
  if (seconds === null) return null;
  const like = sessions.filter((session) => session.client === agent && /^(wss?-fmp4|webrtc)$/.test(session.transport));
  const distance = (session) => Math.abs(session.seconds - seconds);
  return like.reduce((best, each) => (best && distance(best) <= distance(each) ? best : each), null);
}

function endButton(session, stream, update) {
  const whose = t('{client} at {address}, which plays {stream}.', { client: session.client ?? session.transport, address: session.address, stream });
  return may(rights.endSession) && small(t('End'), async () => {
    if (await ask(t('End this connection?'), `${whose} ${t('Its client may connect again.')}`, [], () => remove(`/sessions/${session.sessionId}`), { verb: t('End'), isDanger: true })) { notice(t('Ended.')); await update(); }
  }, `end-${session.sessionId}`);
}

/** `session`: a session, or the publisher of a stream. */
export function traceButton({ sessionId: id, client, address }) {
  return may(rights.getSessionTrace) && small(t('Trace'), async () => {
    const data = await get(`/sessions/${id}/trace`);
    const arrows = { in: '→', out: '←' };
    const lines = data.entries.map((entry) => {
      const message = entry.message && `${ms(entry.message.timestampMs)}, ${bytes(entry.message.bytes)} ${entry.message.flags.join(' ')}`;
      return `${(-entry.agoMs / 1000).toFixed(2).padStart(8)} s ${arrows[entry.direction] ?? '·'} ${entry.kind} ${[entry.name, entry.text, message].filter(Boolean).map((each) => each.trim()).join(' ')}`;
    });
    inform([t('Trace'), client, address].filter(Boolean).join(' · '), dim(t('What this connection said (→), was told (←) and did (·) lately, for those who know the protocol.')), h('pre', { class: 'trace' }, lines.join('\n') || none));
  }, `trace-${id}`);
}
