package import LibC

/// `struct iovec`: a piece of memory for `writev`.
package typealias IOVector = iovec
