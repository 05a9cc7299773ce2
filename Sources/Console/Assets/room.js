// A room's page: live preview, why it is bad, its viewers, its events, and the possible actions.
import { get, may, post, remove } from './api.js';
import { h, show, stack } from './dom.js';
import { Feed } from './feed.js';
import { figuresOf } from './figures.js';
import { t } from './i18n.js';
import { refusals } from './refusals.js';
import { about, links, playAddresses, pushAddress, recordings, talk, timeline } from './room-sides.js';
import { charts, health, part, preview, streamPath } from './room-stream.js';
import { rights } from './rights.js';
import { ask, button, every, notice, stateBadge, verdictBadge } from './ui.js';
import { viewers } from './viewers.js';

export function roomPage(id) {
  const path = `/rooms/${part(id)}`;
  const stops = [];
  let room = null;
  let slotNumber = 1;
  const slot = () => room?.streams.find((each) => each.slot === slotNumber) ?? room?.streams[0];

  const head = h('div', { class: 'head' });
  const body = h('div');
  const element = h('div', null, h('p', null, h('a', { href: '#/rooms' }, `← ${t('All rooms')}`)), head, body);
  // One call for all parts that show the stream's figures.
  let stream = Promise.resolve(null);
  const figures = () => stream;
  const watchedFor = () => parts.preview.seconds;
  const parts = { preview: preview(() => room, slot, path, figures), health: health(figures, () => parts.viewers.showSlow()), refusals: refusals(slot), viewers: viewers(slot, figures, watchedFor), charts: charts(slot, figures, watchedFor), timeline: timeline(path),
    talk: talk(path, () => room), recordings: recordings(id), push: pushAddress(path, () => room, slot), play: playAddresses(path, slot), links: links(slot), about: about(() => room, figures, watchedFor) };

  function build() {
    show(body, h('div', { class: 'columns' },
      stack(parts.preview.element, parts.health.element, parts.refusals.element, parts.viewers.element, parts.charts.element),
      h('div', { class: 'stack plain' }, parts.about.element, parts.push.element, parts.play.element, parts.talk.element, parts.recordings.element, parts.links.element, parts.timeline.element)));
  }

  function drawHead() {
    const slots = room.streams.length > 1 && h('select', { 'aria-label': t('Streams'), onchange: (event) => { slotNumber = Number(event.target.value); drawHead(); refresh(); } },
      room.streams.map((each) => h('option', { value: each.slot, selected: each.slot === slotNumber }, `${each.app}/${each.name}`)));
    // The buttons act on the chosen slot.
    const key = JSON.stringify([room.version, room.state, parts.health.verdict, slotNumber, slot()?.isActive]);
    if (key === drawn) return;
    drawn = key;
    show(head, h('h1', null, room.title || room.roomId), room.title && h('code', null, room.roomId), stateBadge(room.state), verdictBadge(parts.health.verdict), slots,
      h('div', { class: 'row', role: 'group', 'aria-label': t('Actions') }, actions(room, slot(), path, refresh)));
  }
  let drawn;

  async function refresh() {
    try {
      room = await get(path);
    } catch (error) {
      // 400: the name in the URL cannot be a room's id.
      if (error.status !== 404 && error.status !== 400) throw error;
      feed?.stop();
      feed = null;
      show(head, h('h1', null, t('Room {id} does not exist (any more).', { id })));
      body.replaceChildren();
      parts.talk.stop();
      return;
    }
    if (!body.firstChild) build();
    feed ??= follow();
    drawHead();
    stream = slot() && may(rights.getStream) ? figuresOf(slot()) : Promise.resolve(null);
    // A part that fails does not hold up the others; a stream that has just ended is no error.
    const outcomes = await Promise.allSettled(Object.values(parts).map((each) => each.update?.()));
    drawHead();
    const failure = outcomes.find((outcome) => outcome.status === 'rejected' && outcome.reason.status !== 404);
    if (failure) throw failure.reason;
  }

  let due;
  let feed = null;
  const follow = () => new Feed({ room: id, handle: (message) => {
    parts.timeline.handle(message);
    parts.talk.handle(message);
    if (message.type === 'event') due ??= setTimeout(() => { due = undefined; refresh().catch(() => {}); }, 300);
  } });
  stops.push(every(4000, refresh));
  return { element, title: id, stop() { stops.forEach((stop) => stop()); feed?.stop(); clearTimeout(due); for (const each of Object.values(parts)) each.stop?.(); } };
}

// --- Actions

const bans = () => [['600', t('10 minutes')], ['3600', t('1 hour')], ['86400', t('1 day')], ['604800', t('1 week')]];

function actions(room, slot, path, refresh) {
  const isOpen = ['created', 'live', 'interrupted'].includes(room.state);
  const run = (text, right, isThere, done, help, fields, act, danger) => isThere && may(rights[right]) && button(text, async () => {
    if (await ask(`${text}: ${room.title || room.roomId}`, help, fields, act, { verb: text, isDanger: danger })) { notice(done); await refresh(); }
  }, danger ? { class: 'danger' } : {});
  return [
    run(t('Drop the push'), 'dropStream', slot?.isActive, t('Push ended'), t('The push ends; the device may push again at once.'), [], () => post(`${streamPath(slot)}/drop`)),
    run(t('Forbid'), 'forbidRoom', isOpen, t('Room forbidden'), t('The push and all viewers are cut, and refused for this time. Afterwards the device must push again by itself.'),
      [{ name: 'reason', label: t('Reason'), length: 200 }, { name: 'seconds', label: t('For how long'), options: bans() }],
      (values) => post(`${path}/forbid`, { seconds: Number(values.seconds), ...(values.reason && { reason: values.reason }) }), true),
    run(t('Allow again'), 'resumeRoom', room.state === 'forbidden', t('Room allowed again'), t('Pushes will be accepted again. The device must push again by itself; a room that nobody pushes to expires after some minutes.'), [], () => post(`${path}/resume`)),
    run(t('Renew'), 'renewRoom', isOpen, t('Room renewed'), room.state === 'live'
      ? t('The room is live and goes on. If it has a longest duration, it may last so many seconds more; otherwise nothing changes.')
      : t('Without a push the room is kept for so many seconds more.'), [{ name: 'seconds', label: t('Seconds'), type: 'number', value: '3600', required: true }],
      (values) => post(`${path}/renew`, { seconds: Number(values.seconds) })),
    run(t('Record'), 'recordRoom', room.state === 'live' && room.liveStatus !== 3, t('Recording began'), t('It goes on until you stop it, also when the device drops and returns.'), [], () => post(`${path}/record`, { action: 'start', slot: slot.slot })),
    run(t('Stop recording'), 'recordRoom', room.liveStatus === 3, t('Recording ended'), t('The file is finished, and stands under Recordings.'), [], () => post(`${path}/record`, { action: 'stop', slot: slot.slot })),
  ].concat(ends(room, path, run));
}

/** Irreversible actions take one more step. */
function ends(room, path, run) {
  const isOpen = ['created', 'live', 'interrupted'].includes(room.state);
  const all = [
    run(t('Close room'), 'closeRoom', isOpen, t('Room closed'), t('The room ends for everybody, and pushes to its name are refused from now on.'), [], () => post(`${path}/close`), true),
    run(t('Expire'), 'expireRoom', isOpen, t('Room expired'), t('The room ends as if its time had passed.'), [], () => post(`${path}/expire`), true),
    run(t('Delete room'), 'deleteRoom', true, t('Room deleted'), t('The room and its events are removed.'), [], async () => { await remove(path); location.hash = '#/rooms'; }, true),
  ].filter(Boolean);
  return all.length ? h('details', { class: 'more' }, h('summary', { class: 'button' }, t('End the room…')), h('div', { class: 'row' }, all)) : [];
}
