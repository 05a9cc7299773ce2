/// What a new room is to be. Checked on creation; a ``FieldError`` names what is wrong.
package struct NewRoom: Sendable, Equatable {
    /// Nil: a random one (or the device's last, when `deviceUid` has a room).
    package var id: RoomID?
    package var app = "live"
    /// 1–8 streams.
    package var slots = 1
    package var owner: String?
    package var title = ""
    /// A JSON object as text, at most 4 KB.
    package var custom = "{}"
    package var isPublic = true
    package var deviceUid: String?
    package var policy: RoomPolicy
    package init(policy: RoomPolicy) { self.policy = policy }
}

/// Changes to a room; what is nil stays. An inner nil clears.
package struct RoomPatch: Sendable, Equatable {
    package var owner: String??
    package var title: String?
    package var custom: String?
    package var isPublic: Bool?
    package var deviceUid: String??
    /// By ``RoomPolicy/Field/name``, in the unit of its `get`.
    package var policy: [String: Int64] = [:]
    package init() {}
}

/// A page of rooms. Cost does not depend on how many there are, nor on which page.
package struct RoomQuery: Sendable, Equatable {
    package enum Order: String, Sendable, CaseIterable {
        /// Newest first.
        case newest = "-createdAt"
        case oldest = "createdAt"
        case title
        case titleDescending = "-title"
        case id
    }
    /// Rooms in one of these; none named: in any.
    package var states: Set<RoomState> = []
    package var owner: String?
    /// True: public rooms only, false: the others only.
    package var isPublic: Bool?
    /// Words of title, id or owner; the last may be the beginning of one.
    package var text: String?
    package var order = Order.newest
    /// The `next` of the page before.
    package var after: String?
    /// From 1; in place of `after`, for the first ``deepest`` rooms.
    package var page = 1
    package var size = 20
    package static let sizes = 1...200
    package static let deepest = 10_000
    /// Bytes of an `after`: base64 of a title, of at most four bytes a character, and of an id.
    package static let longestCursor = 2_000
    package init() {}
}

package struct RoomPage: Sendable {
    package let rooms: [Room]
    package let total: Int
    /// The total of a text search stops at 1,000.
    package let totalIsCapped: Bool
    /// For `after`; nil on the last page.
    package let next: String?
}

package struct Member: Sendable, Equatable {
    package let user: String
    package let nick: String
    package let joinedAt: Int64
    package let seenAt: Int64
}

/// A publisher at the door, its credential checked already.
package struct PushRequest: Sendable, Equatable {
    package var path: StreamPath
    package var clientAddress: String
    /// The connection, as `GET /sessions` numbers it.
    package var session: UInt64
    /// The URL's query with credentials taken out; its beginning when it is long.
    package let parameters: String
    /// May make an ad-hoc room.
    package var mayCreateRoom: Bool
    /// The only room that its credential is for; nil when that names none.
    package var room: String?
    /// Whose credential it is, if that names one.
    package var user: String?
    /// Pushes by device: `live/<deviceUid>` stands for slot 1 of the device's room.
    package init(
        path: StreamPath, clientAddress: String, session: UInt64, parameters: String, mayCreateRoom: Bool, room: String? = nil,
        user: String? = nil
    ) {
        self.path = path
        self.clientAddress = clientAddress
        self.session = session
        self.parameters = Self.shortened(parameters)
        self.mayCreateRoom = mayCreateRoom
        self.room = room
        self.user = user
    }

    /// Bytes of the query that are kept.
    package static let mostParameters = 512

    private static func shortened(_ text: String) -> String {
        guard text.utf8.count > self.mostParameters else { return text }
        var end = text.utf8.index(text.startIndex, offsetBy: self.mostParameters)
        while end.samePosition(in: text.unicodeScalars) == nil, end > text.startIndex { end = text.utf8.index(before: end) }
        return String(text[..<end])
    }
}

package struct PushGrant: Sendable, Equatable {
    package let sequence: PushSequence
    package let roomID: RoomID
    package let slot: Int
    /// Where it really goes: differs from the asked path when that was a device UID.
    package let path: StreamPath
    package let policy: RoomPolicy
}

package enum PushRefusal: Error, Sendable, Equatable {
    /// No room, and none is made for this address.
    case noRoom
    case forbidden(untilMs: Int64, reason: String)
    case roomClosed
    /// The stream is not of the room that the credential is for.
    case otherRoom
    /// The user was thrown out of the room and may not come back yet.
    case keptOut(String, forMs: Int64)
    /// Pushes have made too many rooms of late.
    case tooManyRooms(waitSeconds: Double)
    /// The disk has less room than it is to keep: nothing new begins.
    case diskFull(freeBytes: Int64, minFreeBytes: Int64)
    /// The store cannot be written; nothing was changed.
    case unavailable(String)
}

/// What a push carries, as known when its first media arrives.
package struct PushMedia: Sendable, Equatable {
    package var width: Int?
    package var height: Int?
    package var videoCodec: String?
    package var audioCodec: String?
    package init() {}
}

/// A push as `GET /streams/published` lists it.
package struct PublishedPush: Sendable, Equatable {
    package let sequence: Int64
    package let path: StreamPath
    package let roomID: RoomID?
    package let clientAddress: String
    package let startedAt: Int64
    package let mediaAt: Int64?
    package let endedAt: Int64?
    package let end: PushEnd?
    package let width: Int?
    package let height: Int?
}

/// A stream that nobody may push to.
package struct StreamBan: Sendable, Equatable {
    package let path: StreamPath
    package let createdAt: Int64
    package let resumeAt: Int64
    package let reason: String
    package static let defaultMs: Int64 = 7 * 86_400_000
    package static let longestMs: Int64 = 90 * 86_400_000
    /// Characters, as many as bytes in Tencent's ForbidLiveStream.
    package static let longestReason = 2_048
    /// Bytes of an `after`: base64 of app and name, of at most four bytes a character.
    package static let longestCursor = 3_000
}

/// Why a call did not succeed. The API maps each to a status.
package enum RegistryError: Error, Sendable, Equatable {
    case invalid(FieldError)
    case noSuchRoom(String)
    case noSuchMember(String)
    /// The user was thrown out of the room and may not come back yet.
    case keptOut(String, of: RoomID, forMs: Int64)
    /// The stream is not forbidden / has no push.
    case notForbidden(StreamPath)
    /// `allowed` are the states in which it would have been possible.
    case wrongState(RoomID, state: RoomState, action: String, allowed: [RoomState])
    /// The room is not of a version that the change was meant for, but of this one.
    case versionChanged(RoomID, version: String)
    /// It is of a version that the change is not meant for.
    case versionExcluded(RoomID, version: String)
    /// An id that an open or retained room has; `freeAt` when it will be free, nil for open rooms.
    case idTaken(RoomID, state: RoomState, freeAt: Int64?)
    /// A device that another open room has.
    case deviceTaken(String, by: RoomID)
    /// The idempotency key was used for another request.
    case keyReused(String)
    /// Another request with the idempotency key is being carried out.
    case keyBusy(String)
    /// The request with the idempotency key was carried out by an earlier version of the server, which did not keep the answer.
    case keyOutcomeUnknown(String)
    /// The disk has less room than it is to keep: nothing new is made.
    case diskFull(freeBytes: Int64, minFreeBytes: Int64)
    case storeFailed(String)
    /// The data directory was deleted or replaced under the server: what is written would be lost.
    case storeGone
    case tooMany(what: String, limit: Int)
}

/// Who asks, for the audit trail in events: "token:ops-laptop", "deadline", "publisher", "cli".
package struct Actor: Sendable, Equatable {
    package let name: String
    package init(_ name: String) { self.name = name }
    package static let time = Actor("deadline")
    package static let publisher = Actor("publisher")
    package static let server = Actor("server")
}

/// An Idempotency-Key of the API: stored with the effect of its request, in one transaction.
package struct IdempotencyKey: Sendable, Equatable {
    package let tokenID: Int64
    package let key: String
    /// Hash of method, path and body.
    package let fingerprint: String
    package init(tokenID: Int64, key: String, fingerprint: String) {
        self.tokenID = tokenID
        self.key = key
        self.fingerprint = fingerprint
    }
}

/// What an operation stores for a repetition of its request: the key, and the answer as made of the operation's result.
///
/// A value. `answer` runs inside the operation's transaction, on the registry's queue: it must not block. When it throws, the operation is
/// undone.
package struct KeptAnswer<Result>: Sendable {
    package let key: IdempotencyKey
    package let answer: @Sendable (Result) throws -> StoredAnswer

    package init(key: IdempotencyKey, answer: @escaping @Sendable (Result) throws -> StoredAnswer) {
        self.key = key
        self.answer = answer
    }
}

/// The stored answer to an earlier request with the same key.
package struct StoredAnswer: Sendable, Equatable {
    package let status: Int
    package let body: String
    package init(status: Int, body: String) {
        self.status = status
        self.body = body
    }
}
