import Support

/// A call of the class's REST API, as its clients make it: `POST /room/kick {"roomId":"math","userId":"u1"}`. A value.
///
/// Paths are relative to the API's base. All calls except `/room/join` and the callback carry a member's token.
package struct ClassroomCall: Sendable, Equatable {
    /// The class; nil for calls that name none.
    package let roomID: String?
    package let action: Action

    package enum Action: Sendable, Equatable {
        case join(name: String, isAudience: Bool, disableCamera: Bool)
        case leave
        case kick(userID: String)
        case downgrade(users: [Classroom.RoleChange])
        case changeRole(userID: String, role: ClassroomRole)
        case transfer(userID: String)
        case speechApply
        case speechApprove(ticket: String)
        case speechReject(ticket: String)
        case upgradeInvite(userID: String, role: ClassroomRole)
        case upgradeApprove(ticket: String)
        case upgradeReject(ticket: String)
        case deviceControl(userID: String, device: ClassroomDevice, isOn: Bool)
        case deviceApprove(ticket: String)
        case deviceReject(ticket: String)
        case deviceSync(device: ClassroomDevice, isOn: Bool)
        case display(kind: ClassroomDisplay.Kind?, userID: String?, uri: String?)
        case boardCreate
        case boardDelete(boardID: String)
        case boardTurn(boardID: String, page: Int64)
        /// Queries: answered from the class's current state.
        case members
        case boards
        /// Renews the caller's token. `userID`: the id in the body.
        case refreshToken(userID: String?)
        /// RongCloud's callback. Its signature must be checked.
        case onlineStatus(RongCloudCallback)
    }

    /// The input for this call. `newID`: the id of a new ticket. Nil for queries, and for joining and creating a whiteboard, which need more data.
    package func input(by: String, newID: String) -> Classroom.Input? {
        switch self.action {
        case .leave: .leave(by: by)
        case .kick(let id): .kick(by: by, userID: id)
        case .downgrade(let users): .downgrade(by: by, users: users)
        case .changeRole(let id, let role): .changeRole(by: by, userID: id, role: role)
        case .transfer(let id): .transfer(by: by, userID: id)
        case .speechApply: .speechApply(by: by, newID: newID)
        case .speechApprove(let ticket): .speechApprove(by: by, ticket: ticket)
        case .speechReject(let ticket): .speechReject(by: by, ticket: ticket)
        case .upgradeInvite(let id, let role): .upgradeInvite(by: by, userID: id, role: role, newID: newID)
        case .upgradeApprove(let ticket): .upgradeApprove(by: by, ticket: ticket)
        case .upgradeReject(let ticket): .upgradeReject(by: by, ticket: ticket)
        case .deviceControl(let id, let device, let isOn): .deviceControl(by: by, userID: id, device: device, isOn: isOn, newID: newID)
        case .deviceApprove(let ticket): .deviceApprove(by: by, ticket: ticket)
        case .deviceReject(let ticket): .deviceReject(by: by, ticket: ticket)
        case .deviceSync(let device, let isOn): .deviceSync(by: by, device: device, isOn: isOn)
        case .display(let kind, let id, let uri): .display(by: by, kind: kind, userID: id, uri: uri)
        case .boardDelete(let id): .boardDelete(by: by, boardID: id)
        case .boardTurn(let id, let page): .boardTurn(by: by, boardID: id, page: page)
        case .join, .boardCreate, .members, .boards, .refreshToken, .onlineStatus: nil
        }
    }

    // MARK: - Reading

    /// Reads a call. Nil for a method and path that the API does not have. Throws a refusal with code 4 for a body that is not JSON, and 1
    /// for a field that is missing or wrong. `query`: decoded.
    package static func read(
        method: String, path: String, query: [(name: String, value: String)], body: String
    ) throws(GatheringRefusal) -> ClassroomCall? {
        let route = "\(method) \(path)"
        if let other = try self.others[route]?(query, body) { return other }
        guard method == "POST", let reader = self.readers[path] else { return nil }
        let fields = try ClassroomFields(body)
        return ClassroomCall(roomID: try fields.room(), action: try reader(fields))
    }

    /// All calls, as method and path.
    package static var routes: Set<String> { Set(self.readers.keys.map { "POST \($0)" } + self.others.keys) }

    private typealias Other =
        @Sendable (_ query: [(name: String, value: String)], _ body: String) throws(GatheringRefusal) -> ClassroomCall

    /// Calls whose body does not name the class.
    private static let others: [String: Other] = [
        "GET /room/members": { (query, _) throws(GatheringRefusal) in ClassroomCall(roomID: try room(query), action: .members) },
        "GET /room/whiteboard/list": { (query, _) throws(GatheringRefusal) in ClassroomCall(roomID: try room(query), action: .boards) },
        "POST /room/members/online-status": { (query, body) throws(GatheringRefusal) in
            ClassroomCall(roomID: nil, action: .onlineStatus(try RongCloudCallback(query: query, body: body)))
        },
        "POST /user/refresh-token": { (_, body) throws(GatheringRefusal) in
            ClassroomCall(roomID: nil, action: .refreshToken(userID: try ClassroomFields(body).word("userId")))
        },
    ]

    private static func room(_ query: [(name: String, value: String)]) throws(GatheringRefusal) -> String {
        let members = query.filter { $0.name == "roomId" }.map { JSONValue.Member(name: $0.name, value: .string($0.value)) }
        return try ClassroomFields(members).room()
    }

    private typealias Reader = @Sendable (ClassroomFields) throws(GatheringRefusal) -> Action

    private static let readers: [String: Reader] = [
        "/room/join": { (fields) throws(GatheringRefusal) in
            .join(
                name: try fields.name(), isAudience: try fields.flag("audience") ?? false,
                disableCamera: try fields.flag("disableCamera") ?? false)
        },
        "/room/leave": { (_) throws(GatheringRefusal) in .leave },
        "/room/kick": { (fields) throws(GatheringRefusal) in .kick(userID: try fields.needed("userId")) },
        "/room/downgrade": { (fields) throws(GatheringRefusal) in .downgrade(users: try fields.users()) },
        "/room/change-role": { (fields) throws(GatheringRefusal) in
            .changeRole(userID: try fields.needed("userId"), role: try fields.role())
        },
        "/room/transfer": { (fields) throws(GatheringRefusal) in .transfer(userID: try fields.needed("userId")) },
        "/room/speech/apply": { (_) throws(GatheringRefusal) in .speechApply },
        "/room/speech/approve": { (fields) throws(GatheringRefusal) in .speechApprove(ticket: try fields.needed("ticket")) },
        "/room/speech/reject": { (fields) throws(GatheringRefusal) in .speechReject(ticket: try fields.needed("ticket")) },
        "/room/upgrade/invite": invite,
        // sealclass-web's path for an invitation.
        "/room/assign": invite,
        "/room/upgrade/approve": { (fields) throws(GatheringRefusal) in .upgradeApprove(ticket: try fields.needed("ticket")) },
        "/room/upgrade/reject": { (fields) throws(GatheringRefusal) in .upgradeReject(ticket: try fields.needed("ticket")) },
        "/room/device/control": { (fields) throws(GatheringRefusal) in
            let (device, isOn) = try fields.device()
            return .deviceControl(userID: try fields.needed("userId"), device: device, isOn: isOn)
        },
        "/room/device/approve": { (fields) throws(GatheringRefusal) in .deviceApprove(ticket: try fields.needed("ticket")) },
        "/room/device/reject": { (fields) throws(GatheringRefusal) in .deviceReject(ticket: try fields.needed("ticket")) },
        "/room/device/sync": { (fields) throws(GatheringRefusal) in
            let (device, isOn) = try fields.device()
            return .deviceSync(device: device, isOn: isOn)
        },
        "/room/display": { (fields) throws(GatheringRefusal) in
            .display(kind: try fields.display(), userID: try fields.word("userId"), uri: try fields.word("uri"))
        },
        "/room/whiteboard/create": { (_) throws(GatheringRefusal) in .boardCreate },
        "/room/whiteboard/delete": { (fields) throws(GatheringRefusal) in .boardDelete(boardID: try fields.board()) },
        "/room/whiteboard/turn-page": turn,
        // sealclass-web leaves out `/room`.
        "/whiteboard/turn-page": turn,
    ]

    private static let invite: Reader = { (fields) throws(GatheringRefusal) in
        .upgradeInvite(userID: try fields.needed("userId"), role: try fields.role())
    }

    private static let turn: Reader = { (fields) throws(GatheringRefusal) in
        .boardTurn(boardID: try fields.board(), page: try fields.number("page", ClassroomLimits.pages))
    }
}
