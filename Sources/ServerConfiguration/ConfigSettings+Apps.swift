extension ConfigSetting {
    /// The settings of apps, besides those of streams.
    static let apps: [ConfigSetting] = [
        .make(
            "apps.mesh.from", \.apps.meshFrom, .networks, "Addresses that may meet in mesh rooms without a channel token; others need one.",
            applies: .reload),
        .make("apps.mesh.page", \.apps.meshPage, .onOff, "Whether /mesh/ shows a page for trying mesh rooms."),
        .make("apps.mesh.members", \.apps.meshMembers, .count(2...32), "People in a mesh room; each sends its media to all others."),
        .make(
            "apps.tencent.from", \.apps.tencentFrom, .networks,
            "Addresses that may call the Tencent-compatible API, with a key made by earshot keys create.", applies: .reload),
        .make(
            "apps.tencent.domains", \.apps.tencentDomains, .hostNames,
            "The push domains that DomainName may name in that API; empty: any.", applies: .reload),
        .make(
            "apps.machine.from", \.apps.machineFrom, .networks, "Addresses that may get guest accounts for claw machines, and list these.",
            applies: .reload),
        .make(
            "apps.machine.hostFrom", \.apps.machineHostFrom, .networks, "Addresses that may create and manage claw machines.",
            applies: .reload),
        .make("apps.machine.offered", \.apps.machineOfferedMs, .duration(100...day), "How long a player may take to accept a turn."),
        .make(
            "apps.machine.playing", \.apps.machinePlayingMs, .duration(100...day), "How long a game lasts before the claw drops by itself."),
        .make("apps.machine.settling", \.apps.machineSettlingMs, .duration(100...day), "How long the machine may take to tell the result."),
        .make("apps.classroom.from", \.apps.classroomFrom, .networks, "Addresses that may open and join classes.", applies: .reload),
        .make("apps.classroom.ticket", \.apps.classroomTicketMs, .duration(100...day), "How long a request of a class may be answered."),
        .make("apps.classroom.lifetime", \.apps.classroomLifetimeMs, .duration(1_000...(30 * day)), "How long a class lasts."),
        .make(
            "apps.classroom.offline", \.apps.classroomOfflineMs, .duration(100...day),
            "How long a class's member may be away before it has left."),
        .make(
            "apps.classroom.whiteboard", \.apps.classroomWhiteboard, .optional(.url("http", "https")),
            "A server that makes the whiteboards of classes, by POST /room/create and /room/destroy; this one does if not set."),
        .make(
            "apps.classroom.rongcloud.host", \.apps.rongcloud.host, .optional(.url("http", "https")),
            "RongCloud's server API, which carries the messages of classes to native apps; not called if not set."),
        .make("apps.classroom.rongcloud.appKey", \.apps.rongcloud.appKey, .optional(.code(1...64)), "The app's key at RongCloud."),
        .make(
            "apps.classroom.rongcloud.secret", \.apps.rongcloud.secret, .optional(.secret(8...256)),
            "The app's secret at RongCloud, which signs calls and webhooks.", isSecret: true),
        .make("apps.demo", \.apps.demo, .onOff, "Whether /demo/ shows pages for trying classes and claw machines."),
        .make("apps.message", \.apps.messageBytes, .size(1_024...(1 << 20)), "Largest message of a channel or mesh connection."),
        .make(
            "apps.messageRate", \.apps.messageRate, .count(1...10_000),
            "Messages a second of one connection; bursts may be four times as large."),
        .make(
            "apps.backlog", \.apps.backlogBytes, .size((16 << 10)...(64 << 20)),
            "Bytes that may wait for a connection that reads slowly; past it, the connection is cut."),
        .make("apps.members", \.apps.members, .count(2...100_000), "Members of one gathering."),
        .make(
            "apps.gatherings", \.apps.gatherings, .count(1...1_000_000),
            "Channels, classes and machines at a time; of mesh rooms there may be as many again."),
        .make("apps.offline", \.apps.offlineMs, .duration(1_000...day), "How long a channel's member may be away before it has left."),
    ]
}
