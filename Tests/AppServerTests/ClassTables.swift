/// What SealClass's clients count on, as the specification's tables have it: written from them, not from the server's code.
enum ClassTables {
    static let routes: Set<String> = [
        "POST /room/join", "POST /room/leave", "POST /room/kick", "POST /room/downgrade", "POST /room/change-role", "POST /room/transfer",
        "POST /room/speech/apply", "POST /room/speech/approve", "POST /room/speech/reject", "POST /room/upgrade/invite",
        "POST /room/upgrade/approve", "POST /room/upgrade/reject", "POST /room/device/control", "POST /room/device/approve",
        "POST /room/device/reject", "POST /room/device/sync", "POST /room/display", "POST /room/whiteboard/create",
        "POST /room/whiteboard/delete", "POST /room/whiteboard/turn-page", "GET /room/members", "GET /room/whiteboard/list",
        "POST /user/refresh-token", "POST /room/members/online-status",
        // The web client's slips.
        "POST /whiteboard/turn-page", "POST /room/assign",
    ]

    /// Objects, and the members of their contents.
    static let messages: [String: Set<String>] = [
        "SC:RMCMsg": ["action", "userId", "userName", "role", "camera", "microphone", "timestamp"],
        "SC:RCMsg": ["opUserId", "users"], "SC:ATMsg": ["opUserId", "toUserId"], "SC:DisplayMsg": ["display"],
        "SC:WBMsg": ["action", "whiteboardId", "whiteboardName"], "SC:WBTPMsg": ["whiteboardId", "userId", "curPg"],
        "SC:DRMsg": ["type", "enable", "userId", "userName"], "SC:CDNMsg": ["action", "type", "ticket", "opUserId", "opUserName"],
        "SC:RSMsg": ["reqUserId", "reqUserName", "ticket"],
        "SC:SRMsg": ["action", "opUserId", "opUserName", "reqUserId", "reqUserName", "role"],
        "SC:IURMsg": ["action", "ticket", "role", "opUserId", "opUserName"], "SC:TEMsg": ["ticket", "fromUserId", "toUserId"],
    ]

    /// Of answers that are refusals. 12 is in the vendor's list alone; 28 and 32 of that list are nowhere.
    static let codes: Set<Int> = [1, 2, 3, 4, 10, 11, 12, 13, 20, 21, 22, 23, 24, 25, 26, 27, 29, 30, 31, 33, 34, 255]
}

/// The same for the claw machine.
enum MachineTables {
    static let routes: Set<String> = ["tourist", "room/list", "host/create", "host/manage", "host/query"]
    static let commands: Set<Int> = [1, 2, 3, 4, 5, 11, 12, 13]
    static let phases: Set<String> = ["idle", "offered", "playing", "settling"]
    /// 403, 404 and 800 are this server's own.
    static let codes: Set<Int> = [400, 401, 403, 404, 407, 800, 804, 901, 902, 906, 1_101]
}
