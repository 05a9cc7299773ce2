package import NIOCore
package import RTMP
package import Rooms
package import Support

/// A request to publish or play, before any check.
package struct AdmissionRequest: Sendable {
    package enum Action: String, Sendable, CaseIterable { case publish, play }
    package let door: Door
    package var action: Action
    /// The stream. A play under a device's name is for a stream of the device's room once it is admitted.
    package var address: StreamAddress
    /// The name that the client used.
    package let asked: StreamAddress
    package var remote: SocketAddress?
    /// The connection's number, as `GET /sessions` shows it.
    package var session: UInt64
    package init(_ door: Door, action: Action, address: StreamAddress, remote: SocketAddress?, session: UInt64) {
        self.door = door
        self.action = action
        self.address = address
        self.asked = address
        self.remote = remote
        self.session = session
    }

    /// What the player's query says of tracks: the value of `track=`, if it is there once.
    package var track: String? {
        let values = QueryParameters(self.address.query).all("track")
        return values.count == 1 ? values[0] : nil
    }
}

extension StreamAddress {
    /// The stream's name without the query.
    package var streamPath: StreamPath { StreamPath(app: self.app, name: self.name) }
}

/// The identity of an admitted client, as far as known.
package struct AdmissionPass: Sendable, Equatable {
    /// Decides takeovers: the hook's id or user, the JWT's subject, room or stream, the signed stream, the query, or the address. Never logged.
    package var identity: String
    /// A push never takes over one with the same identity and a higher rank: txTime for signed URLs, 0 otherwise.
    package var rank: Int64 = 0
    /// The user id, if the credential or hook names one. Without a credential, the query may name it.
    package var user: String?
    /// The credential's room; nil when it names none. The stream's name fits the room, but may belong to another room that is named like a
    /// slot ("cam-2"): the room registry must check that.
    package var room: String?
    /// The token's role. Decides precedence in a talk channel.
    package var role: String?
    /// Whether a credential or hook admitted the client, not its address alone.
    package var isVerified: Bool
    /// The query without credentials.
    package var parameters: String
    /// Verified by a hook's answer alone: no credential of this server was found good.
    package var isVerifiedByHook = false
    /// Admitted only because a hook will decide: without the hook's answer the pass is worthless, even if the settings have changed meanwhile.
    package var needsHook = false
}

/// The reason why a client is refused.
package struct AdmissionRefusal: Error, Sendable, Equatable {
    package var reason: CloseReason
    /// Explains to the client and the log what was wrong and what is expected. Contains no secret.
    package var message: String
    /// Seconds until the client may try again, if known.
    package var retrySeconds: Int?
    /// The pass of a credential that has expired. A push that began with it may still be running.
    package var late: AdmissionPass?

    package init(reason: CloseReason, message: String, retrySeconds: Int? = nil) {
        self.reason = reason
        self.message = message
        self.retrySeconds = retrySeconds
    }

    func late(_ pass: AdmissionPass?) -> AdmissionRefusal {
        var refusal = self
        refusal.late = pass
        return refusal
    }
}
