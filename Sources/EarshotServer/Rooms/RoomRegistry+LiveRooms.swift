import Delivery
import Packaging
import RoomRegistry

/// The registry keeps the rooms of the live streams, and the list of recordings beside them.
extension RoomRegistry: RecordingIndex {}
