package import Rooms

/// The formats in which deliveries are sent.
extension WebhookTarget.Format {
    /// The format of Tencent Cloud's callbacks.
    package static let tencent = Self(rawValue: "tencent")

    package static let known: [Self] = [.earshot, .tencent]
}

extension WebhookTarget {
    /// Whether the target gets events of this kind: all kinds, or those that have a callback in its format.
    package func accepts(_ kind: RoomEvent.Kind) -> Bool {
        switch self.format {
        case .tencent: TencentPushCallback.kinds.contains(kind)
        // A delivery in another version's format fails with a reason, so that no loss goes unnoticed; that version can send it again.
        default: true
        }
    }
}

extension WebhookBodyError {
    static func unknown(_ format: WebhookTarget.Format) -> WebhookBodyError {
        WebhookBodyError(description: "this version does not know the format \"\(format.rawValue)\" of the target")
    }
}
