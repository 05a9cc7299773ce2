/// Which objects a call may concern when its token has limits (``TokenScope``).
package enum TokenReach: Sendable, Equatable {
    /// Needs no token, or concerns the token alone.
    case anyone
    /// The room in the path. Others answer as if they did not exist.
    case room
    /// The stream in the path. Others answer as if they did not exist.
    case stream
    /// The object in the path: its handler looks it up and decides by ``Call/sees(_:)``.
    case thing
    /// A list, which its handler filters.
    case list
    /// A new object: its handler refuses one outside the limits.
    case creation
    /// The whole server: refused.
    case server
}
