package import Support

/// The settings of a new room. Checked on creation; a ``FieldError`` names an invalid one.
package struct NewRoom: Sendable, Equatable {
    /// Nil: a random id, or the id of the device's last room.
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

/// Changes to a room. A nil field stays unchanged; an inner nil clears it.
package struct RoomPatch: Sendable, Equatable {
    package var owner: String??
    package var title: String?
    package var custom: String?
    package var isPublic: Bool?
    package var deviceUid: String??
    /// Keyed by ``RoomPolicy/Field/name``, in the unit of its `get`.
    package var policy: [String: Int64] = [:]
    package init() {}
}

/// A page of rooms. By `after`, its cost depends neither on the number of rooms nor on the page; by `page`, it grows with the offset.
package struct RoomQuery: Sendable, Equatable {
    package enum Order: String, Sendable, CaseIterable {
        /// Newest first.
        case newest = "-createdAt"
        case oldest = "createdAt"
        case title
        case titleDescending = "-title"
        case id
    }
    /// Rooms in one of these states; empty for all.
    package var states: Set<RoomState> = []
    package var owner: String?
    package var deviceUid: String?
    /// True selects public rooms, false the others, nil both.
    package var isPublic: Bool?
    /// Only rooms of this scope.
    package var scope = TokenScope.all
    /// Searches words of title, id, owner or device; the last may be a prefix.
    package var text: String?
    package var order = Order.newest
    /// The previous page's `next`.
    package var after: String?
    /// From 1; an alternative to `after` for the first ``deepest`` rooms.
    package var page = 1
    package var size = 20
    package static let sizes = 1...200
    package static let deepest = 10_000
    /// Maximum bytes of `after`: base64 of a title (at most four bytes a character) and an id.
    package static let longestCursor = 2_000
    package init() {}
}

package struct RoomPage: Sendable {
    package let rooms: [Room]
    package let total: Int
    /// Whether a text search may have more matches than `total`, which stops at 1,000; `next` goes on to 10,000.
    package let totalIsCapped: Bool
    /// The cursor for `after`; nil on the last page.
    package let next: String?

    package init(rooms: [Room], total: Int, totalIsCapped: Bool, next: String?) {
        self.rooms = rooms
        self.total = total
        self.totalIsCapped = totalIsCapped
        self.next = next
    }
}

package struct Member: Sendable, Equatable {
    package let user: String
    package let nick: String
    package let joinedAt: Int64
    package let seenAt: Int64

    package init(user: String, nick: String, joinedAt: Int64, seenAt: Int64) {
        self.user = user
        self.nick = nick
        self.joinedAt = joinedAt
        self.seenAt = seenAt
    }
}

/// A publisher's request to push, its credential already checked.
package struct PushRequest: Sendable, Equatable {
    package var path: StreamPath
    package var clientAddress: String
    /// The connection's number in `GET /sessions`.
    package var session: UInt64
    /// The URL's query without anything that looks like a credential, cut to ``mostParameters`` bytes.
    package let parameters: String
    /// The URL's query without this server's credentials alone, cut as `parameters`: what a back end put there stays, secrets too. For
    /// callbacks to that back end, never for lists, events or logs.
    package let query: String
    /// Whether it may create an ad-hoc room.
    package var mayCreateRoom: Bool
    /// The only room the credential is for; nil if it names none.
    package var room: String?
    /// The user that the credential names, if any.
    package var user: String?
    /// Who pushes, for nodes that share the registry.
    package var claim: PushClaim
    /// In pushes by device, `live/<deviceUid>` stands for slot 1 of the device's room. `query`: nil if it is the same as `parameters`.
    package init(
        path: StreamPath, clientAddress: String, session: UInt64, parameters: String, query: String? = nil, mayCreateRoom: Bool,
        room: String? = nil, user: String? = nil, claim: PushClaim = .none
    ) {
        self.path = path
        self.clientAddress = clientAddress
        self.session = session
        self.parameters = Self.shortened(parameters)
        self.query = Self.shortened(query ?? parameters)
        self.mayCreateRoom = mayCreateRoom
        self.room = room
        self.user = user
        self.claim = claim
    }

    /// Maximum bytes kept of the query.
    package static let mostParameters = 512

    private static func shortened(_ text: String) -> String {
        guard text.utf8.count > self.mostParameters else { return text }
        var end = text.utf8.index(text.startIndex, offsetBy: self.mostParameters)
        while end.samePosition(in: text.unicodeScalars) == nil, end > text.startIndex { end = text.utf8.index(before: end) }
        return String(text[..<end])
    }
}

/// A publisher's right to a name that another node's publisher has.
package struct PushClaim: Sendable, Equatable {
    package enum Takeover: Sendable, Equatable { case sameIdentity, nobody, anybody }

    /// Who pushes, by its credential.
    @ExactText package var identity: String
    /// Orders claims of one identity; the lower one is outdated.
    package let rank: Int64
    package let takeover: Takeover

    /// So many takeovers of a name in so long a time; more mean that two devices fight for it.
    package static let takeoverLimit: Int64 = 3
    package static let takeoverWindowMs: Int64 = 30_000

    /// Takes nobody over.
    package static let none = PushClaim(identity: "", rank: 0, takeover: .nobody)

    package init(identity: String, rank: Int64, takeover: Takeover) {
        self._identity = identity.exact
        self.rank = rank
        self.takeover = takeover
    }
}

package struct PushGrant: Sendable, Equatable {
    package let sequence: PushSequence
    package let roomID: RoomID
    package let slot: Int
    /// The stream's actual path; differs from the requested one if that was a device UID.
    package let path: StreamPath
    package let policy: RoomPolicy
    /// How often its device had come back to the push while the store was away.
    package var returns = 0

    package init(sequence: PushSequence, roomID: RoomID, slot: Int, path: StreamPath, policy: RoomPolicy) {
        self.sequence = sequence
        self.roomID = roomID
        self.slot = slot
        self.path = path
        self.policy = policy
    }
}

package enum PushRefusal: Error, Sendable, Equatable {
    /// There is no room, and this push may not create one.
    case noRoom
    case forbidden(untilMs: Int64, reason: String)
    case roomClosed
    /// The credential is for another room.
    case otherRoom
    /// The user was kicked from the room and may not return yet.
    case keptOut(String, forMs: Int64)
    /// Pushes have created too many rooms recently.
    case tooManyRooms(waitSeconds: Double)
    /// Too little free disk space; nothing new begins.
    case diskFull(freeBytes: Int64, minFreeBytes: Int64)
    /// Another identity publishes there, on another node.
    case nameTaken
    /// The name was taken over between nodes too often in a short time.
    case flapping
    /// The device has gone before its turn came.
    case gone
    /// The store cannot be written; nothing was changed.
    case unavailable(String)
}

/// A query for ended pushes. Times are in milliseconds since 1970.
package struct EndedPushQuery: Sendable, Equatable {
    package var app: String?
    package var name: String?
    /// Whether `name` is the whole name; otherwise a part of it is enough.
    package var isExact = true
    package var fromMs: Int64
    package var toMs: Int64
    package var onlyWithMedia = false
    /// Whether the push that ended first comes first.
    package var isAscending = false
    package var offset = 0
    package var limit = 100

    package init(fromMs: Int64, toMs: Int64) {
        self.fromMs = fromMs
        self.toMs = toMs
    }
}

/// What a refused client learns of a ban: when it ends, in milliseconds since 1970, and why it was made.
package struct BanTerms: Sendable, Equatable {
    package let untilMs: Int64
    package let reason: String

    package init(untilMs: Int64, reason: String) {
        self.untilMs = untilMs
        self.reason = reason
    }
}

/// A stream that nobody may push to.
package struct StreamBan: Sendable, Equatable {
    package let path: StreamPath
    package let createdAt: Int64
    package let resumeAt: Int64
    package let reason: String

    package init(path: StreamPath, createdAt: Int64, resumeAt: Int64, reason: String) {
        self.path = path
        self.createdAt = createdAt
        self.resumeAt = resumeAt
        self.reason = reason
    }
    package static let defaultMs: Int64 = 7 * 86_400_000
    package static let longestMs: Int64 = 90 * 86_400_000
    /// Maximum characters.
    package static let longestReason = 2_048
    /// Maximum bytes of `after`: base64 of app and name (at most four bytes a character).
    package static let longestCursor = 3_000
}

/// The failure of a call. The API maps each case to a status.
package enum RegistryError: Error, Sendable, Equatable {
    case invalid(FieldError)
    case noSuchRoom(String)
    case noSuchMember(String)
    /// The user was kicked from the room and may not return yet.
    case keptOut(String, of: RoomID, forMs: Int64)
    /// The stream is not forbidden.
    case notForbidden(StreamPath)
    /// `allowed` lists the states in which the action is possible.
    case wrongState(RoomID, state: RoomState, action: String, allowed: [RoomState])
    /// The room has this version, which is not among those the change requires.
    case versionChanged(RoomID, version: String)
    /// The room has this version, which the change excludes.
    case versionExcluded(RoomID, version: String)
    /// An open or retained room has the id. `freeAt` is when it becomes free; nil for open rooms.
    case idTaken(RoomID, state: RoomState, freeAt: Int64?)
    /// Another open room has the device.
    case deviceTaken(String, by: RoomID)
    /// The name already stands for a stream of another room. `field`: what gives the name, `roomId` or `deviceUid`.
    case nameTaken(StreamPath, by: RoomID, field: String)
    /// The idempotency key was used for another request.
    case keyReused(String)
    /// Another request with the idempotency key is in progress.
    case keyBusy(String)
    /// An earlier server version ran the request with this idempotency key and kept no answer.
    case keyOutcomeUnknown(String)
    /// Too little free disk space; nothing new is created.
    case diskFull(freeBytes: Int64, minFreeBytes: Int64)
    /// Another node that shares the registry has it: an app's gathering lives on one node.
    case onOtherNode(String, node: String)
    case storeFailed(String)
    /// The data directory was deleted or replaced under the server, so writes would be lost.
    case storeGone
    case tooMany(what: String, limit: Int)
}

/// The originator of a change, for the audit trail in events: "token:ops-laptop", "deadline", "publisher", "cli".
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

/// The answer an operation stores for repeats of its request: the key, and a closure that makes it from the result.
///
/// A value. `answer` runs in the operation's transaction, on the registry's queue: it must not block. A throw undoes the operation.
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
