// The parts of a room's page beside the stream: the room's facts, its push address, talk, recordings, links and events.
import { get, may, post, remove, url } from './api.js';
import { coded, linkDirections, linkStates, reasonWords } from './codes.js';
import { aside, dim, h, KeyedList, panel, setText, show } from './dom.js';
import { bits, bytes, clock, count, duration, ms, since, time } from './format.js';
import { t } from './i18n.js';
import { listenIn } from './listen.js';
import { part } from './room-stream.js';
import { rights } from './rights.js';
import { button, dangerous, facts, inform, notice, number, redraw, secretLine, small, soon, table } from './ui.js';
import { traceButton } from './viewers.js';
import { eventLine } from './words.js';

// --- Facts

/** `watchedFor`: for how many seconds this page's preview has played; null when it does not. */
export function about(roomNow, figures, watchedFor) {
  const element = panel();
  return {
    element,
    async update() {
      const room = roomNow();
      const stream = await figures();
      const video = stream?.video && [stream.video.codec, stream.video.profile, stream.video.width && `${stream.video.width}×${stream.video.height}`, `${stream.video.fps} fps`, bits(stream.video.bitsPerSecond),
        `${t('Keyframe interval')} ${ms(stream.video.keyframeIntervalMs)}`, { encoded: t('encoded anew for WebRTC'), dropped: t('without B-frames for WebRTC') }[stream.webrtc]].filter(Boolean).join(' · ');
      const audio = stream?.audio && [stream.audio.codec, stream.audio.sampleRate && `${stream.audio.sampleRate / 1000} kHz`, bits(stream.audio.bitsPerSecond)].filter(Boolean).join(' · ');
      const publisher = stream?.publisher;
      // The larger of members and viewers, of which this page's preview is none.
      const online = Math.max(room.members, room.streams.reduce((sum, slot) => sum + slot.viewers, 0) - (watchedFor() > 3 ? 1 : 0), 0);
      redraw(element, () => show(element, facts([
        [t('Since'), `${time(room.since)} (${since(room.since)})`], [room.state === 'forbidden' ? t('Forbidden until') : t('Expires'), room.expiresAt && `${time(room.expiresAt)}${room.state === 'forbidden' ? '' : ` · ${reasonWords(room.expiresReason)}`}`],
        [t('Reason'), room.forbidReason || (room.state === 'live' ? null : reasonWords(room.stateReason))], [t('Owner'), room.owner], [t('Device'), room.deviceUid], [t('People online'), `${count(online)} · ${t('Peak')} ${count(room.peak)}`],
        [t('Video'), video], [t('Audio'), audio],
        [t('Publisher'), publisher && h('span', { class: 'row' }, `${publisher.address} ${publisher.client ?? ''}`, traceButton(publisher))],
        [t('Bit rate'), stream && bits(stream.bitsPerSecond)],
      ])));
    },
  };
}

// --- The push address

export function pushAddress(path, roomNow, slotNow) {
  const place = h('div', { class: 'stack below' });
  const element = panel(h('h2', null, t('Push address')), dim(t('Whoever has it can push to this room while the address is valid.')),
    button(t('Show the push address'), async () => {
      const slot = slotNow().slot;
      const made = await post(`${path}/push-url`, { slot });
      show(place, secretLine(made.rtmp), hereOnly(made.rtmp, 'urls.rtmp / rtmp.listen') ?? h('img', { class: 'qr', alt: t('QR code'), src: url(`${path}/push-url.svg`, { slot }) }),
        h('h2', null, t('For OBS')), facts([[t('Server'), secretLine(made.server)], [t('Stream key'), secretLine(made.streamKey)]]),
        dim(t('The address is valid until {time}.', { time: time(made.expiresAt) }), ' ',
          t('If the room expires before, a push with it opens the room again.')));
    }), place);
  // A closed room accepts no push any more.
  return { element, update() { element.hidden = !may(rights.makePushUrl) || roomNow().state === 'closed'; } };
}

/** A warning for an address that leads each machine to itself. */
function hereOnly(address, settings) {
  const isLoopback = /^(localhost|127\..*|\[::1\])$/.test(new URL(address.replace(/^rtmps?/, 'http')).hostname);
  return isLoopback ? dim(t('This address works on the server itself only. To serve others, set {settings}.', { settings })) : null;
}

// --- The play addresses

const protocols = Object.entries({ HLS: 'hls', 'HLS (TS)': 'hlsTs', 'HTTP-FLV': 'flv', RTMP: 'rtmp', RTMPS: 'rtmps', MP4: 'mp4', 'WebRTC (WHEP)': 'whep' });

export function playAddresses(path, slotNow) {
  const place = h('div', { class: 'stack below' });
  const element = panel(h('h2', null, t('Play addresses')), button(t('Show the play addresses'), async () => {
    const { streams } = await get(`${path}/play-urls`);
    const urls = streams.find((each) => each.slot === slotNow().slot);
    show(place, facts(protocols.map(([name, key]) => [name, urls[key] && secretLine(urls[key])])), hereOnly(urls.hls, 'urls.http / http.listen'),
      urls.expiresAt && dim(t('The address is valid until {time}.', { time: time(urls.expiresAt) })));
  }), place);
  element.hidden = !may(rights.makePlayUrls);
  return { element };
}

// --- Talk

export function talk(path, roomNow) {
  const levels = new Map();
  const list = h('div');
  const ear = listenIn(path);
  const element = panel(h('h2', null, t('Talk')), may(rights.makePlayUrls) && ear.element, list);
  let state = null;

  function draw() {
    if (!state) return;
    const members = state.members;
    const key = JSON.stringify([state.mode, state.holders, members.map((member) => [member.userId, member.muted, member.hasFloor])]);
    if (key !== draw.key) {
      draw.key = key;
      levels.clear();
      show(list, facts([[t('Mode'), t(state.mode)]]), members.length ? table('', [t('Name'), t('Level'), ''], members.map((member) => {
        const meter = h('meter', { min: -60, max: 0, value: -60, 'aria-label': t('Level of {name}', { name: member.userId }) });
        levels.set(member.userId, meter);
        const talker = `${path}/talk/members/${part(member.userId)}`;
        const holds = state.mode === 'ptt' && member.hasFloor;
        // Mute and the floor take effect at once, and the same button takes them back: there is nothing to confirm.
        return [[member.userId, holds && ` (${t('holder')})`, member.muted && ` (${t('muted')})`], meter, h('span', { class: 'row' },
          small(member.muted ? t('Unmute') : t('Mute'), async () => { await post(`${talker}/mute`, { muted: !member.muted }); notice(t('Done.')); await self.update(); }),
          state.mode === 'ptt' && small(holds ? t('Take the floor back') : t('Grant the floor'), async () => {
            const holder = members.find((each) => each.hasFloor);
            await post(`${path}/talk/floor`, holds ? { action: 'revoke', userId: member.userId }
              : holder ? { action: 'handOver', userId: holder.userId, to: member.userId } : { action: 'request', userId: member.userId });
            notice(t('Done.'));
            await self.update();
          }),
          dangerous(t('Kick'), t('Kick'), member.userId, () => post(`${talker}/kick`), t('Kicked.'), self.update))];
      })) : dim(t('Nobody is in the talk channel.')));
    }
    for (const member of members) {
      const meter = levels.get(member.userId);
      if (meter) meter.value = Math.max(-60, member.levelDb ?? -60);
    }
    ear.update(members);
  }

  const self = {
    element,
    async update() {
      if (!['live', 'interrupted'].includes(roomNow().state)) { element.hidden = true; ear.stop(); return; }
      element.hidden = false;
      state = await get(`${path}/talk`);
      draw();
    },
    handle(message) {
      if (message.type !== 'talk.members' || !state) return;
      const heard = new Map(message.members.map((member) => [member.userId, member]));
      for (const member of state.members) {
        const now = heard.get(member.userId);
        if (now) Object.assign(member, { levelDb: now.levelDb, speaking: now.speaking });
      }
      draw();
    },
    stop() { ear.stop(); },
  };
  return self;
}

// --- Recordings

export function recordings(id) {
  const element = panel();
  element.hidden = !may(rights.listRecordings);
  let drawn;
  // Cells of files that grow, by recording: a row that is drawn anew could lose a press.
  const lengths = new Map();
  const sizes = new Map();
  const cell = (cells, { recordingId }, text) => {
    const made = h('span', null, text);
    cells.set(recordingId, made);
    return made;
  };
  const soFar = (each) => t('{time} so far', { time: since(each.startedAt) });
  async function update() {
    if (element.hidden) return;
    const { list } = await get('/recordings', { roomId: id, limit: 20 });
    for (const each of list) if (each.state === 'recording') { setText(lengths.get(each.recordingId) ?? h('span'), soFar(each)); setText(sizes.get(each.recordingId) ?? h('span'), bytes(each.bytes)); }
    const key = JSON.stringify(list.map((each) => [each.recordingId, each.state, each.state === 'recording' || each.bytes]));
    if (key === drawn) return;
    drawn = key;
    show(element, h('h2', null, t('Recordings')), list.length ? table('', [t('Begun'), t('State'), number(t('Length')), number(t('Size')), ''], list.map((each) => [
      clock(each.startedAt), t(each.state), cell(lengths, each, each.state === 'recording' ? soFar(each) : duration(each.duration)), cell(sizes, each, bytes(each.bytes)),
      h('span', { class: 'row' },
        may(rights.downloadRecording) && small(t('Play'), () => inform(t('Recordings'), h('video', { controls: true, autoplay: true, src: url(`/recordings/${each.recordingId}/file`), width: 480 }))),
        may(rights.downloadRecording) && h('a', { class: 'button small', href: url(`/recordings/${each.recordingId}/file`), download: '' }, t('Download')),
        may(rights.deleteRecording) && each.state !== 'recording' && dangerous(t('Delete'), t('Delete'), t('Delete this recording?'), () => remove(`/recordings/${each.recordingId}`), t('Deleted.'), update)),
    ])) : dim(t('No recordings.')));
  }
  return { element, update };
}

// --- Links

export function links(slotNow) {
  const element = panel();
  async function update() {
    const slot = slotNow();
    if (!slot || !may(rights.listLinks)) { element.hidden = true; return; }
    const { list } = await get('/links');
    const mine = list.filter((link) => link.app === slot.app && link.name === slot.name);
    element.hidden = !mine.length;
    mine.sort((one, other) => (one.state === 'running') - (other.state === 'running'));
    if (mine.length) show(element, h('h2', null, t('Links')), table('', [t('What'), t('Address'), t('State')], mine.map((link) => Object.assign(
      [t(linkDirections[link.direction]), h('code', null, link.target), h('span', null, coded(t(linkStates[link.state] ?? link.state), link.state))],
      { note: link.state !== 'running' && link.lastError && aside(link.lastError) }))));
  }
  return { element, update };
}

// --- Events

export function timeline(path) {
  const list = h('ol', { class: 'timeline' });
  const element = panel(h('h2', null, t('Timeline')), list);
  const events = [];
  const rows = new KeyedList(list, (event) => event.id, (event) => ({ element: eventLine(event), update() {} }));
  const most = 400;
  let isLoaded = false;
  const draw = soon(() => rows.update(events.slice(-200).reverse()));
  const self = {
    element,
    async update() {
      if (isLoaded) return;
      isLoaded = true;
      let found = [];
      try {
        const data = await get(`${path}/events`, { before: Number.MAX_SAFE_INTEGER, limit: most });
        found = data.list.reverse();
      } catch (error) {
        isLoaded = false;
        throw error;
      }
      const known = new Set(found.map((event) => event.id));
      events.splice(0, events.length, ...found, ...events.filter((event) => !known.has(event.id)));
      draw();
    },
    handle(message) {
      // Events between loading and the feed's start are in neither: load again.
      if (message.type === 'hello' && message.lastEventId > (events.at(-1)?.id ?? 0)) { isLoaded = false; self.update().catch(() => {}); }
      if (message.type !== 'event' || events.some((event) => event.id === message.id)) return;
      events.push(message);
      if (events.length > most + 100) events.splice(0, events.length - most);
      draw();
    },
    stop() { draw.stop(); },
  };
  return self;
}
