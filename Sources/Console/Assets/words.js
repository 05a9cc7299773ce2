// The meaning of events, for people.
import { linkDirections, reasonWords, recordingEnds } from './codes.js';
import { h } from './dom.js';
import { bytes, clock, duration } from './format.js';
import { t } from './i18n.js';
import { reasonText } from './reasons.js';
import { verdictBadge } from './ui.js';

/** Kinds of events. The English texts are the keys of the translations, as everywhere. */
export const kinds = {
  'room.created': 'Room created', 'room.live': 'Room went live', 'room.interrupted': 'Push interrupted', 'room.resumed': 'Push is back', 'room.forbidden': 'Room forbidden',
  'room.unforbidden': 'Room allowed again', 'room.expired': 'Room expired', 'room.closed': 'Room closed', 'room.updated': 'Room changed', 'room.renewed': 'Room renewed', 'room.deleted': 'Room deleted',
  'room.ownerOffline': 'Owner went away', 'room.ownerOnline': 'Owner is back',
  'stream.begin': 'Push began', 'stream.end': 'Push ended', 'stream.forbidden': 'Stream forbidden', 'stream.resumed': 'Stream allowed again', 'stream.health': 'Verdict changed',
  'member.join': 'A user joined', 'member.leave': 'A user left', 'member.kick': 'A user was kicked', 'session.kick': 'Connection ended on request',
  'record.started': 'Recording began', 'record.finished': 'Recording finished', 'record.failed': 'Recording failed', 'record.ended': 'Recording ended', 'snapshot.taken': 'Picture taken',
  'link.started': 'Link begun', 'link.connected': 'Link carries media', 'link.interrupted': 'Link interrupted', 'link.stopped': 'Link stopped',
  'talk.floor.granted': 'May speak', 'talk.floor.denied': 'May not speak', 'talk.floor.revoked': 'Speaks no more', 'talk.floor.released': 'Stopped speaking',
  'queue.changed': 'Queue changed', 'ticket.opened': 'Asked for something', 'ticket.approved': 'Request approved', 'ticket.rejected': 'Request rejected', 'ticket.expired': 'Request not answered',
  'member.role': 'Another role', 'assistant.transferred': 'Another assistant', 'device.changed': 'Camera or microphone switched', 'display.changed': 'The class sees something else',
  'board.created': 'Whiteboard made', 'board.deleted': 'Whiteboard deleted', 'board.turned': 'Whiteboard turned',
  'turn.offered': 'Turn offered', 'turn.accepted': 'Turn accepted', 'turn.declined': 'Turn declined', 'turn.expired': 'Turn not answered',
  'game.started': 'Game began', 'game.dropped': 'Claw dropped', 'game.result': 'Result of a game', 'game.ended': 'Game over',
  'clock.leapt': 'The clock of the machine was set',
};

/** Groups of kinds to choose from. */
const begins = (...names) => (kind) => names.some((name) => kind.startsWith(`${name}.`));
export const kindGroups = [
  ['Rooms', begins('room')], ['Streams', begins('stream')], ['People', begins('member', 'session')], ['Recordings', begins('record', 'snapshot')], ['Links', begins('link')], ['Talk', begins('talk')],
  ['Apps', begins('queue', 'ticket', 'assistant', 'device', 'display', 'board', 'turn', 'game')], ['Clock', begins('clock')],
];

// Details that the text contains already, or that only programs need.
const unsaid = new Set(['state', 'reason', 'reasons', 'verdict', 'instance', 'app', 'name', 'slot', 'sequence', 'code', 'subcode', 'from', 'by', 'caller', 'end', 'startedMs', 'endedMs', 'takenMs', 'recordingId', 'snapshotId', 'taskId', 'linkId', 'uuid', 'boardId']);

/** Names of an event's details. */
const details = {
  audioCodec: 'audio codec', videoCodec: 'video codec', width: 'width', height: 'height', bytes: 'size', clientAddress: 'address', deviceUid: 'device', direction: 'direction', durationMs: 'length', error: 'error',
  expiresAt: 'expires', expiresReason: 'because', forbidReason: 'reason given', forbiddenUntil: 'until', former: 'before', heldMs: 'held for', holdMs: 'may hold for', message: 'message', mode: 'mode', nick: 'name', owner: 'owner',
  renewedUntil: 'until', sessionId: 'session', target: 'target', title: 'title', transport: 'protocol', userId: 'user', adoptsAt: 'follows at', byMs: 'by', takenAt: 'taken',
  startedAt: 'begun', endedAt: 'ended', ticketId: 'request', kind: 'kind', key: 'member', value: 'value', to: 'to', action: 'action',
  role: 'role', track: 'track', isOn: 'on', display: 'shows', page: 'page', player: 'player', byClock: 'by the clock', won: 'won', endReason: 'because',
};

/** Actors other than a token's holder. */
const actors = { publisher: 'the publisher', server: 'the server', deadline: 'a time limit', player: 'the player' };

function detail([name, value]) {
  const label = t(details[name] ?? name.replace(/Ms$/, '').replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`));
  if (name === 'direction') return t(linkDirections[value] ?? value);
  if (name === 'former') return `${label} ${t(value)}`;
  if (name === 'bytes') return `${label} ${bytes(value)}`;
  if (name === 'expiresReason') return `${label} ${reasonWords(value)}`;
  if (name.endsWith('Ms')) return `${label} ${duration(value / 1000)}`;
  if (typeof value === 'string' && /^\d{4}-\d\d-\d\dT/.test(value)) return `${label} ${clock(value)}`;
  return `${label} ${typeof value === 'boolean' ? t(value ? 'yes' : 'no') : value}`;
}

/** Why it happened. Events of pushes also have the reason of the room's state, which may be older; a recording file is empty while it begins. */
function reasonOf({ kind, data }) {
  if (kind === 'stream.begin' || kind === 'stream.health') return null;
  if (kind === 'stream.end') return reasonWords(data.end);
  if (kind.startsWith('record.')) return recordingEnds[data.reason] && t(recordingEnds[data.reason]);
  return data.reason && data.reason !== data.state && !data.error ? reasonWords(data.reason) : null;
}

/** A line in a list of events. `place`: a link to the event's room, in lists of all rooms. */
export function eventLine(event, place) {
  const { data } = event;
  const more = Object.entries(data).filter(([name, value]) => !unsaid.has(name) && !(event.kind === 'record.started' && value === 0) && value !== null && value !== '' && typeof value !== 'object').map(detail);
  const who = data.caller ?? data.by;
  if (who) more.push(t('by {who}', { who: t(actors[who] ?? who.replace(/^token:/, '')) }));
  const reason = reasonOf(event);
  return h('li', null, h('time', { datetime: event.at }, clock(event.at)), h('div', null,
    h('b', null, t(kinds[event.kind] ?? event.kind)), ' ', place, ' ', event.kind === 'stream.health' && [verdictBadge(data.verdict), ' '], reason && ` ${reason} `,
    kinds[event.kind] && h('code', { class: 'dim' }, event.kind),
    event.kind === 'stream.health' && data.reasons?.length > 0 && h('div', { class: 'data' }, reasonText(data.reasons[0])),
    h('div', { class: 'data' }, more.join(' · '))));
}
