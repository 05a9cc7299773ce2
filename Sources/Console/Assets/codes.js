// Words for codes: why connections and rooms end, which limits there are, and what calls do. The English texts are the keys of the translations.
import { h } from './dom.js';
import { t } from './i18n.js';

/** Reasons of rooms' states, and of the end of connections. */
export const reasons = {
  created: 'the room was made', media: 'media arrived', publisherLost: 'the publisher was lost', stopped: 'the publisher stopped', mediaIdle: 'no media came', paused: 'paused on request', dropped: 'its push was ended on request',
  serverRestart: 'the server restarted', nodeLost: 'its node was lost', resumed: 'on request', resumeTime: 'the ban is over', neverStarted: 'nobody has pushed', graceOver: 'the push did not come back', maxDuration: 'the longest duration',
  heartbeatLost: 'no heartbeat came', ownerOffline: 'the owner is away', ownerAway: 'the owner is away', retention: 'it was kept long enough', expired: 'on request', closed: 'on request', reopened: 'pushed to again', forbidden: 'forbidden',
  client_closed: 'left by itself', connection_lost: 'the connection broke', stream_ended: 'the stream ended', handshake_timeout: 'its handshake took too long', connect_timeout: 'did not say what it wants in time',
  first_media_timeout: 'sent no media in time', unused: 'did nothing for too long', not_rtmp: 'does not speak RTMP', protocol_error: 'broke the protocol', malformed_media: 'sent damaged media', bad_name: 'its stream has no valid name',
  access_denied: 'its address may not do this', credential_missing: 'came without a credential', credential_no_time: 'its credential names no time', credential_expired: 'its credential expired', credential_wrong: 'its credential is wrong',
  credential_throttled: 'too many wrong credentials from its address', rate_limited: 'too many attempts from its address', disk_full: 'the disk is full', hook_denied: 'refused by the admission hook', hook_unavailable: 'the admission hook did not answer',
  proxy_header: 'its proxy sent no valid header', room_closed: 'the room was closed', no_room: 'there is no such room', registry_unavailable: 'the rooms could not be read', kicked: 'ended on request', room_ended: 'the room ended', room_expired: 'the room expired',
  name_taken: 'somebody else pushes this stream', loop: 'the stream would come back to this server', flapping: 'came and went too often', taken_over: 'a new push took its place', media_idle: 'sent no media for too long',
  too_slow: 'too slow: fell too far behind', unplayable: 'its protocol cannot carry this stream', overloaded: 'the server is overloaded', too_many_connections: 'too many connections', too_many_from_address: 'too many connections from its address',
  too_many_publishers: 'too many pushes', too_many_viewers: 'too many viewers', memory_limit: 'the memory for media is used up', inbound_flood: 'sent more than it may', server_shutdown: 'the server stopped',
  clientStopped: 'the publisher stopped', connectionLost: 'the connection broke', takenOver: 'a new push took its place', roomEnded: 'the room ended', protocolError: 'broke the protocol', serverShutdown: 'the server stopped', refused: 'refused',
  // For the right to speak.
  free: 'nobody spoke', turn: 'its turn came', handedOver: 'handed over', preempted: 'somebody more important speaks', asked: 'gave it back', unpublished: 'stopped sending', idle: 'said nothing', maxHold: 'spoke for as long as it may', muted: 'muted',
  moderator: 'by a moderator', modeChanged: 'the rules changed', limit: 'too many speak', queueFull: 'too many wait', notHolding: 'did not hold the floor', notPublishing: 'does not speak here', banned: 'is banned',
};
export const reasonWords = (code) => t(reasons[code] ?? code);

/** Ends of plays that need no look. */
export const plainEnds = ['client_closed', 'connection_lost', 'stream_ended'];

/** Why recordings end. */
export const recordingEnds = {
  stopped: 'stopped on request', stream_ended: 'the stream ended', split: 'goes on in another file', media_changed: 'its codecs changed', server_shutdown: 'the server stopped', server_restart: 'the server restarted',
  quota_exceeded: 'the space for recordings is used up', disk_full: 'the disk is full', unwritable: 'its file cannot be written', no_descriptors: 'too few file descriptors', store_failed: 'the index could not be written',
  unsupported_media: 'its media does not fit into MP4', empty: 'ended before it had media', file_missing: 'its file is gone',
};

/** The text with the code beside it, as in logs, events and the API. */
export const coded = (words, code) => (words === code ? words : [words, ' ', h('code', { class: 'dim' }, code)]);

/** Limits by their names in `earshot_limit_hits_total`, and counters of limits without a setting. */
export const limits = {
  'limits.connections': 'too many connections', 'limits.connectionsPerAddress': 'too many connections from its address', 'limits.publishersTotal': 'too many pushes', 'limits.viewersPerStream': 'too many viewers', 'limits.hlsPlayers': 'too many HLS players',
  'limits.memory': 'the memory for media is used up', 'limits.lag': 'the server is overloaded', pushRates: 'too many attempts from its address', 'limits.bytesBeforePublish': 'sent more than it may',
  'limits.handshake': 'its handshake took too long', 'limits.connect': 'did not say what it wants in time', 'limits.firstMedia': 'sent no media in time', 'data.minFree': 'the disk is full', 'relay.maxBehind': 'too slow: fell too far behind',
  credentials: 'too many wrong credentials from its address', 'limits.httpConnections': 'too many HTTP connections', arrivals: 'too many at once: closed on arrival', 'api.rateLimit': 'too many calls', eventFeeds: 'too many event feeds',
  'apps.messageRate': 'too many messages in a second', 'apps.backlog': 'an app that read too slowly', traces: 'traces without memory',
  httpConnectionsShed: 'idle HTTP connections made room for others', eventFeedsBehind: 'event feeds that fell behind', logLinesDropped: 'log lines that nobody read', memoryRefusals: 'refused for want of memory',
  auditLinesHeld: 'failed calls without a line in the audit', earshot_stats_lost_rows_total: 'rows of statistics lost', earshot_stats_surplus_rows_total: 'rows of statistics deleted early', earshot_store_dropped_facts_total: 'changes that the store did not take',
};

/** Which way a link carries its stream, and how it does. */
export const linkDirections = { push: 'sent to', pull: 'fetched from' };
export const linkStates = {
  idle: 'has not begun', connecting: 'connects', running: 'carries media', waiting: 'waits to try again', held: 'held: refused here, tried again later', stopped: 'waits for a publisher or a viewer', failed: 'given up',
};

/** The tool that an actor used. */
export const tools = { api: 'a program', cli: 'the command', console: 'the console', tencent: 'the Tencent API' };

/** Outcomes of calls. */
export const results = {
  ok: 'carried out', invalid: 'refused: wrong input', not_found: 'refused: not there', wrong_state: 'refused: not in this state', conflict: 'refused: there is one already', precondition_failed: 'refused: changed meanwhile',
  unauthorized: 'refused: no valid token', forbidden: 'refused: the role may not', rate_limited: 'refused: too often', too_large: 'refused: too large', unavailable: 'failed: not possible at the moment', internal: 'failed in the server',
};

/** Calls by operationId. */
export const operations = {
  createRoom: 'Created the room', updateRoom: 'Changed the room', deleteRoom: 'Deleted the room', closeRoom: 'Closed the room', expireRoom: 'Expired the room', renewRoom: 'Renewed the room', pauseRoom: 'Announced a pause',
  forbidRoom: 'Forbade the room', resumeRoom: 'Lifted the ban of the room', joinRoom: 'Added a user', leaveRoom: 'Removed a user', kickMember: 'Kicked a user', makePushUrl: 'Made a push address', drawPushUrl: 'Showed a push address as a QR code',
  paintPushUrl: 'Showed a push address as a QR code', dropStream: 'Ended the push', forbidStream: 'Forbade the stream', resumeStream: 'Lifted the ban of the stream', endSession: 'Ended a connection', redeliverDelivery: 'Sent a delivery again',
  createLink: 'Made a link', deleteLink: 'Deleted a link', recordRoom: 'Started or stopped recording', deleteRecording: 'Deleted a recording', makeRecordingUrl: 'Made a link to a recording', makeSnapshotUrl: 'Made a link to a picture', changeTalk: 'Changed the rules of talk', changeFloor: 'Changed who may speak',
  muteTalker: 'Muted or unmuted a talker', kickTalker: 'Kicked a talker', allowTalker: 'Let a talker come back', makeTalkToken: 'Made a credential to talk', createToken: 'Created a token', revokeToken: 'Revoked a token',
  createWebhook: 'Added a webhook', updateWebhook: 'Changed a webhook', deleteWebhook: 'Removed a webhook', pauseWebhook: 'Paused a webhook', resumeWebhook: 'Resumed a webhook',
  logInToConsole: 'Logged in to the console', logOutOfConsole: 'Logged out of the console',
  endGathering: 'Ended a gathering', kickFromGathering: 'Removed a member of a gathering', pauseQueue: 'Paused a queue', resumeQueue: 'Resumed a queue', removeFromQueue: 'Took somebody out of a queue',
  makeChannelToken: 'Made a credential for a channel', createKey: 'Created a key', revokeKey: 'Revoked a key', DropLiveStream: 'Ended the push', ForbidLiveStream: 'Forbade the stream', ResumeLiveStream: 'Lifted the ban of the stream',
  testWebhook: 'Tested a webhook', redeliverDeliveries: 'Sent the failed deliveries again', reconnectSession: 'Asked a client to connect again', reconnectViewers: 'Asked the viewers to connect again',
  reloadSettings: 'Reloaded the settings', drainServer: 'Began to end the server', drainNode: 'Began to end the server',
};
