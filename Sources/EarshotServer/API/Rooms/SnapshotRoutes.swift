import NIOCore
import HTTPTypes
import Rooms

extension APIRoute {
    private static let slot = Input("slot", .whole(1...8), "Which of the room's streams.", fallback: 1)
    private static let width = Input("width", .whole(16...3_840), "Pixels; the height follows. As wide as the stream without it.")

    /// Pictures of what is live.
    static let snapshots: [APIRoute] = [
        APIRoute(
            raw: .get, "/rooms/{roomId}/snapshot.jpg", "getSnapshot", .rooms, .app,
            "The stream's last keyframe as a JPEG picture, at most some seconds old.", in: [RoomInputs.room.erased],
            query: [Self.slot.erased, Self.width.erased], type: "image/jpeg"
        ) { call in
            let room = try await call.rooms.room(try call.value(RoomInputs.room))
            let number = Int(try call.value(Self.slot))
            guard let slot = room.slots.first(where: { $0.number == number }) else {
                throw APIError(FieldError("slot", "\(number)", "the room has \(room.slots.count) streams"))
            }
            guard room.state != .forbidden, room.state != .closed else {
                throw APIError(.notFound, .notFound, "The room shows no picture: it is \(room.state.rawValue).")
            }
            let jpeg = try await call.core.snapshot(of: slot.path, width: call[Self.width].map { Int($0) })
            return Array(jpeg.readableBytesView)
        }
    ]
}
