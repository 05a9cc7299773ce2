import Access
import Rooms
import Support

/// A snapshot (200) in the format of Tencent Cloud's callbacks. Pure.
struct TencentSnapshotNotice: TencentCallback {
    /// The data of the event snapshot.taken.
    private struct Picture: Decodable {
        let app: String
        let name: String
        let snapshotId: String
        let takenMs: Int64
        let bytes: Int64
        let width: Int
        let height: Int
    }

    private let picture: Picture

    var app: String { self.picture.app }
    var name: String { self.picture.name }

    init(_ event: RoomEvent) throws(WebhookBodyError) { self.picture = try Self.data(of: event) }

    func fields(_ sender: WebhookRequest.Sender) -> [(String, JSONValue)] {
        let picture = self.picture
        // As in Tencent's callback, `pic_url` is the path in the store and `pic_full_url` the address.
        let path = "\(PublicAddress.apiPrefix)/snapshots/\(picture.snapshotId)/file"
        return [
            ("event_type", 200), ("create_time", .integer(picture.takenMs / 1_000)), ("file_size", .integer(picture.bytes)),
            ("width", .integer(Int64(picture.width))), ("height", .integer(Int64(picture.height))), ("pic_url", .string(path)),
            ("pic_full_url", .string("\(sender.http)\(path)")),
        ]
    }
}
