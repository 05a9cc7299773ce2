import Packaging
import RoomRegistry
import Streaming

/// The registry keeps the rooms of the live streams, and the list of recordings beside them.
extension RoomRegistry: RecordingIndex {}
