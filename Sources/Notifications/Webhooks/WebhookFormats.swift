package import Rooms

/// The shapes in which notices are sent.
extension WebhookTarget.Format {
    /// The shape of Tencent Cloud's callbacks.
    package static let tencent = Self(rawValue: "tencent")

    package static let known: [Self] = [.earshot, .tencent]
}

extension WebhookTarget {
    /// Whether the target is notified of events of this kind: all, or those that have a callback in its format.
    package func takes(_ kind: RoomEvent.Kind) -> Bool {
        switch self.format {
        case .tencent: TencentNotice.kinds.contains(kind)
        // Notices in a format of another version fail and say why, so that nothing is lost unseen: that version can send them again.
        default: true
        }
    }
}

extension WebhookBodyError {
    static func unknown(_ format: WebhookTarget.Format) -> WebhookBodyError {
        WebhookBodyError(description: "this version does not know the format \"\(format.rawValue)\" of the target")
    }
}
