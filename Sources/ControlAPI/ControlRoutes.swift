package enum ControlRoutes {
    /// All of them, in the document's order.
    package static let all: [ControlRoute] =
        RoomRoutes.all + SnapshotRoutes.all + MemberRoutes.all + URLRoutes.all + StreamRoutes.all + SessionRoutes.all + ReconnectRoutes.all
        + EventRoutes.all + DeliveryRoutes.all + RecordingRoutes.all + TalkRoutes.all + TokenRoutes.all
        + ServerRoutes.all + OperationRoutes.all + SettingRoutes.all + NodeRoutes.all + StatsRoutes.all + AuditRoutes.all
        + WebhookRoutes.all
}
