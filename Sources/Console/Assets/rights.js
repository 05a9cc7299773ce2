// The least role for each call that the console offers, by operationId. A * marks calls that concern the whole server, which tokens limited to some
// apps or rooms may not make, a + those that a back end may make for the rooms that it created. A test compares this with the server's own tables.
export const rights = {
  createRoom: 'backend', closeRoom: 'backend', expireRoom: 'ops', renewRoom: 'backend', forbidRoom: 'ops', resumeRoom: 'ops', deleteRoom: 'admin',
  makePushUrl: 'backend', makePlayUrls: 'backend', listStreams: 'ops', listRefusals: 'ops', getStream: 'backend+', getStreamStats: 'ops', dropStream: 'backend+', forbidStream: 'ops', resumeStream: 'ops',
  listSessions: 'ops', endSession: 'ops', recordRoom: 'backend+', listRecordings: 'ops', deleteRecording: 'ops', downloadRecording: 'ops',
  muteTalker: 'backend', kickTalker: 'backend', changeFloor: 'backend', changeTalk: 'backend', listLinks: 'ops',
  getServer: 'ops*', listSettings: 'admin*', listNodes: 'ops*', drainNode: 'admin*', getCounters: 'ops*', getMetrics: 'ops*', checkSelf: 'ops*', listDeliveries: 'ops', listWebhookTargets: 'ops*', redeliverDelivery: 'ops',
  getSessionTrace: 'ops', getStreamFigures: 'ops', listWebhooks: 'admin*', createWebhook: 'admin*', testWebhook: 'admin*', pauseWebhook: 'admin*', resumeWebhook: 'admin*', redeliverDeliveries: 'ops*',
  deleteWebhook: 'admin*', listAudit: 'admin*', listFinishedPlays: 'ops',
  listGatherings: 'backend', getGathering: 'backend', endGathering: 'ops', kickFromGathering: 'ops', pauseQueue: 'backend', resumeQueue: 'backend', removeFromQueue: 'backend',
  listTokens: 'admin*', createToken: 'admin*', revokeToken: 'admin*', listEvents: 'backend',
};
