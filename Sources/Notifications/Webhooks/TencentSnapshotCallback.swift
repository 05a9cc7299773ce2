import Access
import Rooms
import Support

/// A snapshot (200) in the format of Tencent Cloud's callbacks. Pure.
struct TencentSnapshotCallback: TencentCallback {
    let picture: SnapshotDetails

    var stream: StreamPath { self.picture.path }

    func fields(_ sender: WebhookSender, atSeconds: Int64) -> [(String, JSONValue)] {
        let picture = self.picture
        // As in Tencent's callback, `pic_url` is the path in the store and `pic_full_url` the address.
        let path = "\(PublicAddress.apiPrefix)/snapshots/\(picture.id)/file"
        return [
            ("event_type", 200), ("create_time", .integer(picture.takenAt / 1_000)), ("file_size", .integer(picture.bytes)),
            ("width", .integer(Int64(picture.width))), ("height", .integer(Int64(picture.height))), ("pic_url", .string(path)),
            ("pic_full_url", .string(sender.link(path, atSeconds: atSeconds))),
        ]
    }
}
