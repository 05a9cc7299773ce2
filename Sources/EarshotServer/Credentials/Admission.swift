package import NIOCore
package import RTMP

/// Who asks to publish or play, before anything is believed.
package struct AdmissionRequest: Sendable {
    package enum Action: String, Sendable { case publish, play }
    package var action: Action
    package var address: StreamAddress
    package var remote: SocketAddress?
    /// The connection's number, as `GET /sessions` shows it.
    package var session: UInt64
    package init(action: Action, address: StreamAddress, remote: SocketAddress?, session: UInt64) {
        self.action = action
        self.address = address
        self.remote = remote
        self.session = session
    }
}

/// Let in: who it is, as far as is known.
package struct AdmissionPass: Sendable, Equatable {
    /// Decides takeovers: JWT subject, hook's id, signed stream name, or address. Never logged.
    package var identity: String
    /// Of two with one identity, one of lower rank does not take over: txTime for signed URLs, 0 otherwise.
    package var rank: Int64 = 0
    /// User id, if a credential (or, for what is open anyway, the query) tells one.
    package var user: String?
    /// The room that the credential is for, nil when it names none. The stream's name fits; that the stream is this room's and not that of
    /// a room named like another one's slot ("cam-2") is for whoever knows the rooms to check.
    package var room: String?
    /// As a token names it: who may speak before whom in a talk channel.
    package var role: String?
    /// By a credential, not by its address alone.
    package var isVerified: Bool
    /// The query without credentials.
    package var parameters: String

    package init(
        identity: String, rank: Int64 = 0, user: String?, room: String? = nil, role: String? = nil, isVerified: Bool, parameters: String
    ) {
        self.identity = identity
        self.rank = rank
        self.user = user
        self.room = room
        self.role = role
        self.isVerified = isVerified
        self.parameters = parameters
    }
}

/// Kept out, and why.
package struct AdmissionRefusal: Error, Sendable, Equatable {
    package var reason: CloseReason
    /// For the client and the log: what was wrong and what is expected. No secret.
    package var message: String
    /// When it may be tried again, where that is known.
    package var retrySeconds: Int?

    package init(reason: CloseReason, message: String, retrySeconds: Int? = nil) {
        self.reason = reason
        self.message = message
        self.retrySeconds = retrySeconds
    }
}
