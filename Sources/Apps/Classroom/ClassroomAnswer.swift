package import Support

/// Writes the answers of the class's REST API. Pure.
///
/// `{"data":{"result":true},"errCode":0,"errDetail":"","errMsg":"OK"}`, always with HTTP status 200. M is
/// `{userId, userName, role, joinTime, camera, microphone}`; times are milliseconds since 1970.
package enum ClassroomAnswer {
    package static func result(_ result: JSONValue = true) -> JSONValue { self.envelope(result, .ok, "") }

    package static func refusal(_ refusal: GatheringRefusal) -> JSONValue {
        let (code, detail) = (ClassroomCode(refusal), "\(refusal)")
        return self.envelope(.null, code, detail == code.message ? "" : detail)
    }

    private static func envelope(_ result: JSONValue, _ code: ClassroomCode, _ detail: String) -> JSONValue {
        [
            "data": ["result": result], "errCode": .integer(Int64(code.rawValue)), "errDetail": .string(detail),
            "errMsg": .string(code.message),
        ]
    }

    /// The result of a join: `{roomId, imToken, authorization, display, userInfo: M, members: [M], whiteboards}`.
    package static func join(
        _ room: Classroom, roomID: String, member: Gathering.Member, imToken: String, authorization: String
    ) -> JSONValue {
        [
            "roomId": .string(roomID), "imToken": .string(imToken), "authorization": .string(authorization),
            "display": .string(room.display?.text ?? ""), "userInfo": self.member(member, room), "members": self.members(room),
            "whiteboards": self.boards(room),
        ]
    }

    /// `[M]`, in the order in which they joined.
    package static func members(_ room: Classroom) -> JSONValue { .array(room.gathering.members.map { self.member($0, room) }) }

    /// `[{whiteboardId, name, curPg}]`, oldest first.
    package static func boards(_ room: Classroom) -> JSONValue {
        .array(
            room.boards.map { ["whiteboardId": .string($0.id), "name": .string($0.name), "curPg": .integer($0.page)] })
    }

    private static func member(_ member: Gathering.Member, _ room: Classroom) -> JSONValue {
        let devices = room.devices(of: member.id)
        return [
            "userId": .string(member.id), "userName": .string(member.name),
            "role": .integer(ClassroomRole(rawValue: member.role)?.number ?? 0), "joinTime": .integer(member.joinedAtMs),
            "camera": .bool(devices.camera), "microphone": .bool(devices.microphone),
        ]
    }
}
