/// Reason why a connection ended: one word for the log, the API and the counters. Every closed connection has exactly one.
package enum CloseReason: String, Sendable, CaseIterable {
    /// The client closed its end.
    case clientClosed = "client_closed"
    /// The connection broke: reset, time-out of the network.
    case connectionLost = "connection_lost"
    /// The stream ended; a viewer over HTTP has no other use for its connection.
    case streamEnded = "stream_ended"
    case handshakeTimeout = "handshake_timeout"
    case connectTimeout = "connect_timeout"
    /// Published, but sent no audio or video.
    case firstMediaTimeout = "first_media_timeout"
    /// Connected, but neither published nor played.
    case unused
    /// Something other than RTMP on the RTMP port.
    case notRTMP = "not_rtmp"
    /// The bytes break the RTMP specification or a limit.
    case protocolError = "protocol_error"
    /// An audio or video message whose header cannot be read.
    case malformedMedia = "malformed_media"
    case badName = "bad_name"
    /// The address is not allowed to publish or play.
    case accessDenied = "access_denied"
    /// No credential where one is needed.
    case credentialMissing = "credential_missing"
    /// A signature without its expiry time.
    case credentialNoTime = "credential_no_time"
    case credentialExpired = "credential_expired"
    /// A wrong signature, or one for another stream.
    case credentialWrong = "credential_wrong"
    /// The address sent too many wrong credentials. For a while, further ones are rejected unchecked.
    case credentialThrottled = "credential_throttled"
    /// The address or credential has begun pushes, or created rooms by them, too often lately.
    case rateLimited = "rate_limited"
    /// The disk has less space than data.minFree, so no push or room begins.
    case diskFull = "disk_full"
    /// The authorisation hook denied it.
    case hookDenied = "hook_denied"
    /// The authorisation hook did not answer, or not in its format.
    case hookUnavailable = "hook_unavailable"
    /// A connection from a listed TCP proxy without a valid PROXY protocol header in time.
    case proxyHeader = "proxy_header"
    /// The stream is forbidden until its resume time.
    case forbidden
    /// The stream's room is closed.
    case roomClosed = "room_closed"
    /// The stream has no room and the address may not create one.
    case noRoom = "no_room"
    /// The room registry could not be read.
    case registryUnavailable = "registry_unavailable"
    /// Cut by the API; may reconnect.
    case dropped
    /// Ended by the API, or its user was thrown out of the room.
    case kicked
    /// The room's time ran out, or it was closed.
    case roomEnded = "room_ended"
    case nameTaken = "name_taken"
    /// The push or play would feed a stream with itself through other servers.
    case loop
    /// Two publishers with one credential keep taking over a name from each other.
    case flapping
    /// The same publisher came back on another connection.
    case takenOver = "taken_over"
    case mediaIdle = "media_idle"
    /// A viewer that could not keep up.
    case tooSlow = "too_slow"
    /// The viewer's protocol cannot carry the stream: a codec, or B-frames.
    case unplayable
    /// The event loop has more viewers than it can serve in time.
    case overloaded
    case tooManyConnections = "too_many_connections"
    case tooManyFromAddress = "too_many_from_address"
    case tooManyPublishers = "too_many_publishers"
    case tooManyViewers = "too_many_viewers"
    /// The server's memory is used up, so no push or play begins.
    case memoryLimit = "memory_limit"
    /// Too many bytes arrived while a decision was pending.
    case inboundFlood = "inbound_flood"
    case serverShutdown = "server_shutdown"
}
