package import HTTPAPI

/// A call of the control API.
package typealias ControlRoute = Route<APIServices>
typealias APICall = Call<APIServices>
